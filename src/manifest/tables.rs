//! The tables of keys: what may be written where. Decoder and JSON Schema both read them, so they cannot disagree.
//!
//! Plain data; nothing here reads a manifest.

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// `true` or `false`.
    Switch,
    /// A single value of this form.
    Text(Form),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Shape),
    /// One value, or a list of them.
    OneOrMany(&'static Shape),
    /// A map with these keys.
    Map(&'static [Field]),
    /// A map with these keys, or a single value that stands for the first of them.
    ShortOrMap(&'static [Field]),
    /// A map whose keys the user chooses: form of the keys, shape of the values.
    Free(Form, &'static Shape),
}

/// A key of a map.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// What its value looks like.
    pub shape: Shape,
    /// Whether the map makes no sense without it.
    pub needed: bool,
    /// What it means, for the schema.
    pub about: &'static str,
}

/// What the text of a single value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text without secrets, not empty.
    Any,
    /// A version: exact, prefix, range, `auto` or `none`.
    Version,
    /// The word 1: the format of the manifest.
    Format,
    /// `[A-Za-z0-9][A-Za-z0-9._:-]*`.
    Name,
    /// A name with ranges.
    NodeName,
    /// An address with ranges, or an IPv6 address.
    Address,
    /// The name of a group.
    Group,
    /// A user or group of the system.
    Account,
    /// A path on the controller.
    LocalPath,
    /// An absolute path on a node.
    NodePath,
    /// Octal digits of a file's mode.
    Mode,
    /// A port.
    Port,
    /// A whole number.
    Count,
    /// A whole number or a percentage.
    Share,
    /// `unlimited` or a number.
    Limit,
    /// A name of a kernel setting, an environment variable or the like.
    Word,
    /// Text in which secrets may stand.
    Content,
    /// Nothing but a reference to a secret.
    Secret,
    /// `[user@]host[:port]`.
    Jump,
    /// A public key or its fingerprint.
    HostKey,
    /// `Nx NAME`.
    Gpus,
    /// An address with scheme.
    Url,
    /// A date.
    Date,
    /// A code of a finding.
    Code,
    /// A nodeset.
    Nodeset,
    /// A name of a package, with everything package managers allow.
    Package,
    /// A unit of systemd.
    Unit,
}

const fn field(key: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { key, shape, needed: false, about }
}

const fn needed(key: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { key, shape, needed: true, about }
}

use Shape::{Choice, Free, List, Map, OneOrMany, ShortOrMap, Switch, Text};

const ANY: Shape = Text(Form::Any);
const VERSION: Shape = Text(Form::Version);
const PATHS: Shape = OneOrMany(&Text(Form::LocalPath));
const HOST_KEYS: Shape = OneOrMany(&Text(Form::HostKey));
const AUTO_NONE: Shape = Choice(&["auto", "none"]);

const SSH: &[Field] = &[
    field("user", Text(Form::Account), "Login user."),
    field("port", Text(Form::Port), "Port, 22 when neither this nor ~/.ssh/config says otherwise."),
    field("identity", PATHS, "Key file or files; relative to the manifest."),
    field("passphrase", Text(Form::Secret), "Passphrase of the key files: ${env:...}, ${file:...}, ..."),
    field("password", Text(Form::Secret), "Login password: ${env:...}, ${file:...}, ..."),
    field("become", Choice(&["sudo", "none"]), "How to become root."),
    field("become_password", Text(Form::Secret), "Password for sudo: ${env:...}, ${file:...}, ..."),
    field(
        "host_keys",
        Choice(&["strict", "ask", "accept-new"]),
        "What to do with an unknown host key; a changed one is always refused.",
    ),
    field("kex", OneOrMany(&Text(Form::Word)), "Key exchange methods, preferred first."),
    field("config", Switch, "Whether ~/.ssh/config is read; true when not written."),
    field(
        "jump",
        OneOrMany(&ShortOrMap(JUMP)),
        "Jump hosts, nearest to the controller first: [user@]host[:port] or a map.",
    ),
];

const JUMP: &[Field] = &[
    needed("host", Text(Form::Jump), "Name or address."),
    field("port", Text(Form::Port), "Port."),
    field("user", Text(Form::Account), "Login user."),
    field("identity", PATHS, "Key file or files."),
    field("host_key", HOST_KEYS, "Its host key or keys."),
];

const DRIVER: &[Field] = &[
    field("version", VERSION, "Version of the NVIDIA driver."),
    field("flavor", Choice(&["auto", "open", "proprietary"]), "Kernel modules."),
    field("source", Choice(&["nvidia", "distribution", "runfile"]), "Where it comes from."),
    field("fabric_manager", AUTO_NONE, "Fabric manager for NVSwitch systems."),
    field("cuda_compat", VERSION, "The forward compatibility package: none, auto or like 13-0."),
];

const CUDA: &[Field] = &[
    field("version", VERSION, "Version of the CUDA toolkit."),
    field("source", Choice(&["repo", "runfile"]), "Where it comes from."),
];

const ONLY_VERSION: &[Field] = &[field("version", VERSION, "Version.")];

const PYTORCH: &[Field] = &[
    field("version", VERSION, "Version of PyTorch."),
    field("variant", Text(Form::Word), "cu124, cpu, pypi (the index default), conda or auto."),
    field("manager", Choice(&["venv", "uv", "conda", "pip", "auto"]), "What makes the environment."),
    field("path", Text(Form::NodePath), "Where the environment is."),
    field("companions", Free(Form::Package, &VERSION), "Packages whose version follows that of PyTorch."),
    field("packages", List(&ANY), "Further Python packages."),
];

const CONTAINER: &[Field] = &[
    field("engine", Choice(&["docker", "podman", "containerd", "none"]), "Container engine."),
    field("source", Choice(&["docker", "distribution"]), "Where it comes from."),
    field("toolkit", VERSION, "Version of the NVIDIA container toolkit."),
    field("images", List(&ANY), "Images to have."),
];

const RDMA: &[Field] = &[
    field("fabric", Choice(&["roce", "infiniband", "auto", "none"]), "Kind of network."),
    field("stack", Choice(&["inbox", "doca", "mofed", "auto", "none"]), "Where its software comes from."),
    field("devices", OneOrMany(&ANY), "Devices to use."),
    field("gpudirect", Choice(&["auto", "dmabuf", "peermem", "none"]), "How GPUs reach the network."),
];

const STACK: &[Field] = &[
    field("driver", ShortOrMap(DRIVER), "NVIDIA driver."),
    field("cuda", OneOrMany(&ShortOrMap(CUDA)), "The system's CUDA toolkit; a list installs several."),
    field("cudnn", ShortOrMap(ONLY_VERSION), "cuDNN."),
    field("nccl", ShortOrMap(ONLY_VERSION), "NCCL."),
    field("python", ShortOrMap(ONLY_VERSION), "Python."),
    field("pytorch", ShortOrMap(PYTORCH), "PyTorch."),
    field("container", Map(CONTAINER), "Containers with GPUs."),
    field("rdma", Map(RDMA), "RDMA network."),
    field("nccl_env", Free(Form::Word, &ANY), "Environment variables for NCCL."),
];

const LIMITS: &[Field] = &[
    field("memlock", Text(Form::Limit), "Locked memory: unlimited or bytes."),
    field("nofile", Text(Form::Limit), "Open files."),
    field("nproc", Text(Form::Limit), "Processes."),
    field("stack", Text(Form::Limit), "Stack size."),
    field("core", Text(Form::Limit), "Size of core files."),
];

const BASE: &[Field] = &[
    field("hosts", Choice(&["cluster", "none"]), "Whether /etc/hosts has all nodes; cluster where trust is set."),
    field("time", AUTO_NONE, "auto keeps a running time service, else installs the distribution's."),
    field("limits", Map(LIMITS), "Limits of the trust user, else of the login user."),
    field("sysctl", Free(Form::Word, &ANY), "Kernel settings."),
    field("modules", List(&Text(Form::Word)), "Kernel modules to load."),
];

const TRUST: &[Field] = &[
    field("user", Text(Form::Account), "The user that may log in from every node to every node."),
    field("method", Choice(&["keys"]), "How."),
];

const FIREWALL: &[Field] = &[
    field("backend", Choice(&["auto", "nftables", "firewalld", "ufw", "iptables", "none"]), "What filters."),
    field("allow_from", OneOrMany(&ANY), "Who may connect: cluster, or networks."),
];

const MONITORING: &[Field] = &[
    field("node_exporter", Switch, "The exporter of the system."),
    field("dcgm_exporter", Switch, "The exporter of the GPUs."),
    field("prometheus", ANY, "The node that collects: a name, head or none."),
];

const PACKAGE: &[Field] = &[
    needed("name", Text(Form::Package), "Name of the package."),
    field("version", Text(Form::Word), "Exact version, or a prefix that ends in *."),
    field("hold", Switch, "Whether it is kept from moving."),
    field("state", Choice(&["present", "absent"]), "present when not written."),
];

const FILE: &[Field] = &[
    needed("path", Text(Form::NodePath), "Absolute path on the node."),
    field(
        "content",
        Text(Form::Content),
        "The content; {{ node.name }} and ${env:...} are filled in, $${ stands for ${.",
    ),
    field("source", Text(Form::LocalPath), "A file beside the manifest, copied as it is."),
    field("template", Text(Form::LocalPath), "A file beside the manifest, filled in."),
    field("target", ANY, "What the link points to, for state: link."),
    field("owner", Text(Form::Account), "Owner."),
    field("group", Text(Form::Account), "Group."),
    field("mode", Text(Form::Mode), "Mode in octal digits, like 0644."),
    field("state", Choice(&["present", "absent", "directory", "link"]), "present when not written."),
    field("restart", OneOrMany(&Text(Form::Unit)), "Units to restart after a change."),
];

const SERVICE: &[Field] = &[
    needed("name", Text(Form::Unit), "Unit; .service may be left out."),
    field("enabled", Switch, "Whether it starts at boot; not managed when not written."),
    field("running", Switch, "Whether it runs now; not managed when not written."),
];

const COMMAND: &[Field] = &[
    needed("name", Text(Form::Name), "A name for plan and log."),
    needed("check", Text(Form::Content), "Shell that exits 0 when there is nothing to do."),
    needed("apply", Text(Form::Content), "Shell that does it."),
    field("undo", Text(Form::Content), "Shell that undoes it."),
    field("user", Text(Form::Account), "Who runs it; root when not written."),
];

/// Keys of an item of `packages:`, `files:`, `services:` and `commands:`, and which of them tells items apart.
pub const LISTS: [(&str, &str); 4] =
    [("packages", "name"), ("files", "path"), ("services", "name"), ("commands", "name")];

/// What top, groups and nodes may all carry.
macro_rules! layered {
    ($($extra:expr),* $(,)?) => {
        &[
            $($extra,)*
            field("ssh", Map(SSH), "How nodes are reached."),
            field("stack", Map(STACK), "Versions of the GPU stack."),
            field("base", Map(BASE), "Hosts, time, limits and kernel settings."),
            field("trust", Map(TRUST), "Log in without password between all nodes."),
            field("firewall", Map(FIREWALL), "Packet filter."),
            field("monitoring", Map(MONITORING), "Exporters and their collector."),
            field("packages", List(&ShortOrMap(PACKAGE)), "Packages of the system."),
            field("files", List(&Map(FILE)), "Files, directories and links."),
            field("services", List(&Map(SERVICE)), "Units of systemd."),
            field("commands", List(&Map(COMMAND)), "Commands with a guard."),
        ]
    };
}

/// What groups and nodes may carry besides.
macro_rules! declared {
    ($($extra:expr),* $(,)?) => {
        layered![
            $($extra,)*
            field("os", ANY, "Declared system, like ubuntu-22.04."),
            field("kernel", ANY, "Declared kernel."),
            field("arch", ANY, "Declared architecture, x86_64 or aarch64."),
            field("glibc", VERSION, "Declared C library."),
            field("gpus", OneOrMany(&Text(Form::Gpus)), "Declared GPUs: 8x A100-SXM4-80GB."),
            field("nvswitch", ANY, "Declared NVSwitches."),
            field("nics", OneOrMany(&ANY), "Declared network cards."),
            field("secure_boot", ANY, "Declared Secure Boot: true or false."),
            field("host_key", HOST_KEYS, "Host key or keys: ssh-ed25519 AAAA... or SHA256:..."),
        ]
    };
}

/// The keys of declared hardware that are facts of a node.
pub const DECLARED: [&str; 8] = ["os", "kernel", "arch", "glibc", "gpus", "nvswitch", "nics", "secure_boot"];

/// What a group may carry.
pub const GROUP: &[Field] = declared![];

/// What an entry of `nodes:` may carry.
pub const NODE: &[Field] = declared![
    needed("name", Text(Form::NodeName), "Name of the node, also with ranges: gpu[01-16]."),
    field("address", Text(Form::Address), "Address, also with ranges; the name when not written."),
    field("groups", OneOrMany(&Text(Form::Group)), "Groups; later ones win."),
    field("state", Choice(&["in", "out"]), "out: not contacted, not counted, loses nothing on its peers."),
];

const STRATEGY: &[Field] = &[
    field("canary", Text(Form::Count), "Nodes that go first."),
    field("batch", Text(Form::Share), "Nodes at once: a number or a percentage."),
    field("max_failures", Text(Form::Count), "Failures after which no further node starts."),
    field("drain", Choice(&["none", "slurm"]), "How jobs are moved away first."),
];

const ACCEPT: &[Field] = &[
    needed("code", Text(Form::Code), "Code of the finding."),
    field("nodes", Text(Form::Nodeset), "Where."),
    field("until", Text(Form::Date), "Last day of the waiver."),
    needed("because", ANY, "Why."),
];

const MIRRORS: &[Field] = &[
    field("nvidia", Text(Form::Url), "Mirror of NVIDIA's repositories."),
    field("docker", Text(Form::Url), "Mirror of images."),
    field("pytorch", Text(Form::Url), "Mirror of PyTorch's index."),
    field("python", Text(Form::Url), "Mirror of the Python index."),
    field("os", Text(Form::Url), "Mirror of the distribution."),
];

/// What the manifest itself may carry.
pub const TOP: &[Field] = layered![
    needed("version", Text(Form::Format), "Format of the manifest: 1."),
    needed("cluster", Text(Form::Name), "Name of the cluster."),
    field("scheduler", Map(&[field("kind", Choice(&["none", "slurm"]), "Which.")]), "The scheduler of jobs.",),
    field("mirrors", Map(MIRRORS), "Mirrors to use in place of the public sources."),
    field("strategy", Map(STRATEGY), "How disruptive changes go through the cluster."),
    field("accept", List(&Map(ACCEPT)), "Waivers for findings."),
    field("groups", Free(Form::Group, &Map(GROUP)), "Named sets of nodes with common settings."),
    needed("nodes", List(&Map(NODE)), "The machines."),
];
