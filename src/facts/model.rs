//! The facts of a node, typed; as JSON the contract that `audit`, `check` and `plan --facts` read.
//!
//! Missing key: not asked or not readable. `null` or `[]`: asked, absent. Says nothing of how a fact is found.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::known::Known;

/// Everything known of one node; its JSON is the format of `facts --out DIR/NODE.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// The node's name in the manifest.
    pub node: String,
    /// `/etc/machine-id`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub machine_id: Known<String>,
    /// Changes with every boot; the proof of a reboot.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub boot_id: Known<String>,
    /// Operating system.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub os: Known<Os>,
    /// NVIDIA GPUs in the order of their PCI addresses.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub gpus: Known<Vec<Gpu>>,
    /// NVSwitches seen on the PCI bus or by the driver.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub nvswitches: Known<u32>,
    /// Compute processes that nvidia-smi lists.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub gpu_processes: Known<u32>,
    /// The NVIDIA driver.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub driver: Known<Driver>,
    /// Loaded kernel modules, sorted; built-in ones are not among them.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub modules: Known<Vec<String>>,
    /// Toolkits, as MAJOR.MINOR, sorted.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub cuda: Known<Vec<String>>,
    /// Newest forward-compatibility package, as `13-0`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub cuda_compat: Known<String>,
    /// cuDNN libraries.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub cudnn: Known<Vec<Library>>,
    /// NCCL libraries.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub nccl: Known<Vec<Library>>,
    /// Interpreters of the system, as `3.10`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub python: Known<Vec<String>>,
    /// Virtual and conda environments in the usual places.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub python_envs: Known<Vec<Environment>>,
    /// The container engine.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub container: Known<Container>,
    /// Images of Docker, as `NAME:TAG`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub images: Known<Vec<String>>,
    /// RDMA devices.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub rdma: Known<Rdma>,
    /// Network interfaces without loopback.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub network: Known<Vec<Interface>>,
    /// The first address /etc/hosts gives for the node's own name.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub hosts_self: Known<IpAddr>,
    /// Mount point to free bytes.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub disk_free: Known<BTreeMap<String, u64>>,
    /// NCCL variables of /etc/nccl.conf and /etc/environment.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub nccl_env: Known<BTreeMap<String, String>>,
    /// Limits of the session that asked.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub limits: Known<Limits>,
    /// Enabled package repositories, as `URL SUITE`, user and password cut out.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub repos: Known<Vec<String>>,
    /// Packages kept from moving.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub holds: Known<Vec<String>>,
    /// Whether packages are upgraded without anybody asking.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub unattended_upgrades: Known<bool>,
    /// Whether the clock follows a time source.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub time_synced: Known<bool>,
    /// The kernel's host name.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub hostname: Known<String>,
    /// SSH host keys in /etc/ssh, as `ssh-ed25519 AAAA...`, sorted.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub host_keys: Known<Vec<String>>,
    /// Effective user id of the session that asked.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub uid: Known<u32>,
    /// Whether systemd is pid 1.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub systemd: Known<bool>,
    /// The family of package tools.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub package_manager: Known<PackageManager>,
    /// The unit of the running time service.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub time_service: Known<String>,
    /// Scripts of earlier runs that still live; not readable without root.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub running_runs: Known<Vec<Run>>,
    /// Reactions that an earlier run could not catch up; not readable without root.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub pending: Known<Vec<String>>,
}

/// Operating system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Os {
    /// `ID` of os-release, lower case; CentOS Stream is `centos-stream`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub id: Known<String>,
    /// `VERSION_ID` of os-release, as text.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub version: Known<String>,
    /// Release of the running kernel.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub kernel: Known<String>,
    /// `x86_64`, `aarch64`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub arch: Known<String>,
    /// Version of the C library.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub glibc: Known<String>,
    /// Whether the firmware enforces Secure Boot.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub secure_boot: Known<bool>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gpu {
    /// Name as the driver says, without NVIDIA, Tesla and GeForce; null when no driver says it.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub model: Known<String>,
    /// `10de:20b2`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub pci_id: Known<String>,
    /// `GPU-...`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub uuid: Known<String>,
    /// Whether MIG mode is on; null where the GPU has none.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub mig: Known<bool>,
}

/// The NVIDIA driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Driver {
    /// Version of the user-space libraries.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub installed: Known<String>,
    /// Version of the loaded kernel module.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub loaded: Known<String>,
    /// `open` or `proprietary`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub flavor: Known<String>,
    /// Version of the installed fabric manager.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub fabric_manager: Known<String>,
    /// `running` or `stopped`; null when it is not installed.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub fabric_manager_state: Known<String>,
    /// Version of the installed NVLink subnet manager.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub nvlsm: Known<String>,
}

/// A library and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Library {
    /// Its version.
    pub version: String,
    /// `system`, `wheel` or `image`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub origin: Known<String>,
    /// The file, or the environment it belongs to.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub path: Known<String>,
}

/// A Python environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Its directory.
    pub path: String,
    /// Its Python, as `3.11`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub python: Known<String>,
    /// Normalised name to version.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
}

/// The container engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Container {
    /// `docker`, `podman`, `containerd`, `cri-o`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub engine: Known<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub version: Known<String>,
    /// Version of the NVIDIA container toolkit.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub toolkit: Known<String>,
    /// Version of the control groups, 1 or 2.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub cgroup: Known<u32>,
    /// `systemd` or `cgroupfs`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub cgroup_driver: Known<String>,
}

/// RDMA on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rdma {
    /// `inbox`, `mlnx-ofed` or `doca`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub stack: Known<String>,
    /// The devices, by name; of each the first port.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub devices: Known<Vec<RdmaDevice>>,
}

/// An RDMA device, its first port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RdmaDevice {
    /// `mlx5_0`.
    pub name: String,
    /// Node GUID, `0c42:a103:0012:3456`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub guid: Known<String>,
    /// `ACTIVE`, `DOWN`, `INIT`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub state: Known<String>,
    /// `Ethernet` or `InfiniBand`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub link_layer: Known<String>,
    /// Rate in Gbit/s, rounded down.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub rate_gbps: Known<u32>,
    /// Index of the first RoCE v2 entry with an IPv4 address.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub gid_v2: Known<u32>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// `eth0`.
    pub name: String,
    /// Largest packet.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub mtu: Known<u32>,
    /// `up`, `down`, `unknown`.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub state: Known<String>,
    /// Its addresses, link-local ones too.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub addresses: Known<Vec<Prefixed>>,
}

/// Limits of the session that asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Memory that may be locked.
    #[serde(default, skip_serializing_if = "Known::is_unknown")]
    pub memlock: Known<Memlock>,
}

/// A run's script that is still alive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Run {
    /// The run's ID.
    pub id: String,
    /// Its process.
    pub pid: u32,
}

/// The family of package tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageManager {
    /// Debian and Ubuntu.
    Apt,
    /// RHEL and its kin.
    Dnf,
}

/// Memory that may be locked: as JSON `"unlimited"` or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memlock {
    /// No limit.
    Unlimited,
    /// At most so many bytes.
    Bytes(u64),
}

impl Serialize for Memlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Memlock::Unlimited => serializer.serialize_str("unlimited"),
            Memlock::Bytes(bytes) => serializer.serialize_u64(*bytes),
        }
    }
}

impl<'de> Deserialize<'de> for Memlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) if text == "unlimited" => Ok(Memlock::Unlimited),
            value => value
                .as_u64()
                .map(Memlock::Bytes)
                .ok_or_else(|| serde::de::Error::custom("expected \"unlimited\" or a number of bytes")),
        }
    }
}

/// An address with the length of its network: `10.0.0.11/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefixed {
    /// The address.
    pub address: IpAddr,
    /// Length of the network part in bits.
    pub length: u8,
}

impl fmt::Display for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefixed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected an address with its length, like 10.0.0.11/24".to_owned();
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if length <= most { Ok(Prefixed { address, length }) } else { Err(wrong()) }
    }
}

impl Serialize for Prefixed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefixed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
