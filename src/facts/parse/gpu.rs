//! GPUs, NVSwitches and the NVIDIA driver: the PCI bus first, then the driver's /proc, then nvidia-smi.

use std::collections::BTreeMap;

use super::super::known::Known;
use super::super::model::{Driver, Facts, Gpu};
use super::text::{self, MOST};
use super::{Answers, Packages};

/// Domain, bus, device, function.
type Address = (u32, u32, u32, u32);

/// Reads GPUs, NVSwitches, driver and modules.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    if answers.has("pci") {
        let (gpus, switches) = devices(answers);
        facts.gpus = Known::Yes(gpus);
        facts.nvswitches = Known::Yes(switches);
    }
    facts.driver = driver(answers);
    if answers.has("modules") {
        let mut modules: Vec<String> = answers
            .lines("modules")
            .filter_map(|line| text::name(line.strip_suffix("/initstate")?))
            .take(MOST)
            .collect();
        modules.sort();
        facts.modules = Known::Yes(modules);
    }
    let loaded = facts.driver.yes().is_some_and(|driver| driver.loaded.yes().is_some());
    if answers.has("processes") {
        // A line is a process: its id, then the memory.
        let count = answers
            .lines("processes")
            .filter(|line| line.split(',').next().is_some_and(|pid| pid.trim().parse::<u32>().is_ok()))
            .count();
        facts.gpu_processes = Known::read(u32::try_from(count).ok());
    } else if answers.has_files() && !loaded {
        facts.gpu_processes = Known::Yes(0);
    }
}

fn address(text: &str) -> Option<Address> {
    let part = |text: &str, most: usize| {
        let fine = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        fine.then(|| u32::from_str_radix(text, 16).ok()).flatten()
    };
    let (rest, function) = text.split_once('.')?;
    let mut parts = rest.split(':');
    let address = (part(parts.next()?, 8)?, part(parts.next()?, 2)?, part(parts.next()?, 2)?, part(function, 1)?);
    parts.next().is_none().then_some(address)
}

fn devices(answers: &mut Answers<'_>) -> (Vec<Gpu>, u32) {
    let mut gpus: BTreeMap<Address, Gpu> = BTreeMap::new();
    let (mut on_bus, mut of_driver) = (0_u32, 0_u32);
    for line in answers.lines("pci").take(MOST) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let ["nvswitch", _] = fields.as_slice() {
            of_driver = of_driver.saturating_add(1);
            continue;
        }
        let device = match fields.as_slice() {
            [at, device, class] => address(at).zip(device.strip_prefix("0x")).zip(class.strip_prefix("0x")),
            _ => None,
        };
        match device {
            Some(((at, device), class)) if text::hex(device, 4) && text::hex(class, 6) => match class.get(..4) {
                Some("0300" | "0302") => {
                    let pci_id = Known::Yes(format!("10de:{}", device.to_ascii_lowercase()));
                    gpus.insert(at, Gpu { model: Known::No, pci_id, ..Gpu::default() });
                }
                Some("0680") => on_bus = on_bus.saturating_add(1),
                _ => {}
            },
            _ => answers.problem("a PCI device", line),
        }
    }
    information(answers, &mut gpus);
    smi(answers, &mut gpus);
    (gpus.into_values().collect(), on_bus.max(of_driver))
}

/// /proc/driver/nvidia/gpus/ADDRESS/information.
fn information(answers: &Answers<'_>, gpus: &mut BTreeMap<Address, Gpu>) {
    for (path, lines) in &answers.files {
        let Some(gpu) =
            path.strip_prefix("proc/driver/nvidia/gpus/").and_then(address).and_then(|address| gpus.get_mut(&address))
        else {
            continue;
        };
        for line in lines {
            let Some((key, value)) = line.split_once(':') else { continue };
            match key.trim() {
                "Model" => gpu.model = Known::asked(model(value)),
                // Question marks until the GPU is first used.
                "GPU UUID" => gpu.uuid = Known::read(uuid(value.trim())),
                _ => {}
            }
        }
    }
}

/// `bus id, uuid, MIG mode, name`; the name last, because it is the one that may hold a comma.
fn smi(answers: &mut Answers<'_>, gpus: &mut BTreeMap<Address, Gpu>) {
    for line in answers.lines("smi").take(MOST) {
        let mut fields = line.splitn(4, ',').map(str::trim);
        let gpu = fields.next().and_then(address).and_then(|address| gpus.get_mut(&address));
        let (Some(gpu), Some(id), Some(mig), Some(name)) = (gpu, fields.next(), fields.next(), fields.next()) else {
            answers.problem("nvidia-smi", line);
            continue;
        };
        if let Some(id) = uuid(id) {
            gpu.uuid = Known::Yes(id);
        }
        if let Some(name) = model(name) {
            gpu.model = Known::Yes(name);
        }
        gpu.mig = match mig {
            "Enabled" => Known::Yes(true),
            "Disabled" => Known::Yes(false),
            "[N/A]" | "N/A" | "[Not Supported]" => Known::No,
            _ => Known::Unknown,
        };
    }
}

fn uuid(text: &str) -> Option<String> {
    text::groups(text.strip_prefix("GPU-")?, '-', &[8, 4, 4, 4, 12]).map(|id| format!("GPU-{id}"))
}

/// The name without what every name begins with; `Unknown` and the placeholder for unreleased boards are no names.
fn model(text: &str) -> Option<String> {
    let mut rest = text.trim();
    for maker in ["NVIDIA ", "Tesla ", "GeForce "] {
        rest = rest.strip_prefix(maker).unwrap_or(rest).trim_start();
    }
    text::title(rest).filter(|name| !["Unknown", "Graphics Device"].contains(&name.as_str()))
}

fn driver(answers: &Answers<'_>) -> Known<Driver> {
    if !answers.has_files() {
        return Known::Unknown;
    }
    let banner = answers
        .files
        .get("proc/driver/nvidia/version")
        .and_then(|lines| lines.iter().find_map(|line| line.strip_prefix("NVRM version:")));
    let loaded = answers
        .file("sys/module/nvidia/version")
        .and_then(text::numbers)
        .or_else(|| banner?.split_whitespace().find_map(|word| text::numbers(word).filter(|word| word.contains('.'))));
    let present = banner.is_some() || answers.files.contains_key("sys/module/nvidia/version");
    // Old files of a runfile installer may lie beside new ones: the newest is what will be loaded.
    let installed = answers
        .marks
        .iter()
        .filter(|(mark, _)| *mark == "driver")
        .filter_map(|(_, version)| text::numbers(version))
        .max_by_key(|version| text::order(version));
    let packages = answers.packages.as_ref();
    let fabric_manager = packages.map_or(Known::Unknown, |packages| Known::asked(fabric_manager(packages)));
    let fabric_manager_state = match (answers.running("nvidia-fabricmanager"), &fabric_manager) {
        (Some(true), _) => Known::Yes("running".to_owned()),
        (Some(false), Known::Yes(_)) => Known::Yes("stopped".to_owned()),
        (_, Known::No) => Known::No,
        _ => Known::Unknown,
    };
    let nvlsm = packages.map_or(Known::Unknown, |packages| {
        Known::asked(packages.installed.get("nvlsm").and_then(|version| text::upstream(version)))
    });
    let flavor = match banner {
        Some(banner) if banner.contains("Open Kernel Module") => Known::Yes("open".to_owned()),
        Some(banner) if banner.contains("Kernel Module") => Known::Yes("proprietary".to_owned()),
        Some(_) => Known::Unknown,
        None if present => Known::Unknown,
        None => flavor_of_packages(packages, installed.is_some()),
    };
    if installed.is_none() && !present && fabric_manager.yes().is_none() && mark_is_asked(answers) {
        return Known::No;
    }
    Known::Yes(Driver {
        installed: if mark_is_asked(answers) { Known::asked(installed) } else { Known::Unknown },
        loaded: if present { Known::read(loaded) } else { Known::No },
        flavor,
        fabric_manager,
        fabric_manager_state,
        nvlsm,
    })
}

/// The marks hold the installed versions; without them their absence says nothing.
fn mark_is_asked(answers: &Answers<'_>) -> bool {
    answers.mark("package_manager").is_some()
}

fn fabric_manager(packages: &Packages<'_>) -> Option<String> {
    packages
        .installed
        .iter()
        .filter(|(name, _)| {
            let branch = name.strip_prefix("nvidia-fabricmanager-").or(name.strip_prefix("nvidia-fabric-manager-"));
            ["nvidia-fabricmanager", "nvidia-fabric-manager"].contains(name)
                || branch.is_some_and(|branch| branch.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .find_map(|(_, version)| text::upstream(version))
}

/// Which modules the packages hold, while none is loaded.
fn flavor_of_packages(packages: Option<&Packages<'_>>, installed: bool) -> Known<String> {
    if !installed {
        return Known::No;
    }
    let Some(packages) = packages else { return Known::Unknown };
    let modules = |name: &&&str| {
        ["nvidia-dkms", "nvidia-kernel", "nvidia-open", "kmod-nvidia", "linux-modules-nvidia", "nvidia-driver-open"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            && !["nvidia-kernel-common", "nvidia-kernel-support", "nvidia-kernel-source"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    let mut found: Vec<&str> = packages
        .installed
        .keys()
        .filter(modules)
        .map(|name| if name.contains("open") { "open" } else { "proprietary" })
        .collect();
    found.dedup();
    match found.as_slice() {
        [one] => Known::Yes((*one).to_owned()),
        _ => Known::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_agree_however_they_are_written() {
        assert_eq!(address("0000:07:00.0"), address("00000000:07:00.0"));
        assert_eq!(address("0009:01:00.0"), Some((9, 1, 0, 0)));
        for wrong in ["", "07:00.0", "0000:07:00", "0000:07:00.0.1", "0:0:0:0.0", "zz:07:00.0", "+000:07:00.0"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn models_lose_their_makers() {
        for (said, wanted) in [
            ("NVIDIA A100-SXM4-80GB", Some("A100-SXM4-80GB")),
            ("Tesla V100-SXM2-16GB", Some("V100-SXM2-16GB")),
            ("NVIDIA GeForce RTX 4090", Some("RTX 4090")),
            ("\t NVIDIA H100 80GB HBM3", Some("H100 80GB HBM3")),
            ("Unknown", None),
            ("NVIDIA Graphics Device", None),
            ("A100\u{1b}[2J", None),
            ("", None),
        ] {
            assert_eq!(model(said).as_deref(), wanted);
        }
    }
}
