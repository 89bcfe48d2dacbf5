//! Facts for people: a few lines a node.

use std::collections::BTreeMap;

use super::known::Known;
use super::model::{Driver, Facts};

/// A few lines about a node: the first begins with its name, the others are indented. What is not known is not mentioned.
pub fn human(facts: &Facts) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", facts.node, system(facts))];
    let mut add = |title: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("  {title:<9} {}", text.chars().flat_map(shown).collect::<String>()));
        }
    };
    add("gpus", gpus(facts));
    if let Some(driver) = facts.driver.yes() {
        add("driver", driver_line(driver));
    } else if facts.driver == Known::No {
        add("driver", "none".to_owned());
    }
    add("software", software(facts));
    if let Some(devices) = facts.rdma.yes().and_then(|rdma| rdma.devices.yes())
        && !devices.is_empty()
    {
        let device = |device: &super::model::RdmaDevice| {
            let rate = device.rate_gbps.yes().map(|rate| format!(" {rate} Gbit/s")).unwrap_or_default();
            format!("{} {}{rate}", device.name, word(&device.state))
        };
        add("rdma", devices.iter().map(device).collect::<Vec<_>>().join(", "));
    }
    add("network", network(facts));
    lines
}

/// Control characters as escapes: facts may come from a file somebody wrote.
fn shown(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

fn word(value: &Known<String>) -> &str {
    value.yes().map_or("?", String::as_str)
}

fn system(facts: &Facts) -> String {
    let Some(os) = facts.os.yes() else { return "operating system not known".to_owned() };
    let secure = if os.secure_boot == Known::Yes(true) { ", Secure Boot" } else { "" };
    let text =
        format!("{} {}, kernel {}, {}{secure}", word(&os.id), word(&os.version), word(&os.kernel), word(&os.arch));
    text.chars().flat_map(shown).collect()
}

fn gpus(facts: &Facts) -> String {
    let Some(gpus) = facts.gpus.yes() else { return String::new() };
    if gpus.is_empty() {
        return "none".to_owned();
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for gpu in gpus {
        let name = gpu.model.yes().or(gpu.pci_id.yes()).map_or("?", String::as_str);
        *counts.entry(name).or_default() += 1;
    }
    let mut parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count}x {name}")).collect();
    parts.extend(facts.nvswitches.yes().filter(|count| **count > 0).map(|count| format!("{count} NVSwitches")));
    parts.join(", ")
}

fn driver_line(driver: &Driver) -> String {
    let mut parts = match (driver.installed.yes(), driver.loaded.yes()) {
        (Some(installed), Some(loaded)) if installed == loaded => vec![format!("{loaded} loaded")],
        (Some(installed), Some(loaded)) => vec![format!("{loaded} loaded, but {installed} installed")],
        (Some(installed), None) => vec![format!("{installed} installed, not loaded")],
        (None, Some(loaded)) => vec![format!("{loaded} loaded")],
        (None, None) => vec!["not loaded".to_owned()],
    };
    parts.extend(driver.flavor.yes().cloned());
    if let Some(version) = driver.fabric_manager.yes() {
        parts.push(format!("fabric manager {version} {}", word(&driver.fabric_manager_state)));
    }
    parts.join(", ")
}

fn software(facts: &Facts) -> String {
    let mut parts = Vec::new();
    let list = |title: &str, values: Option<&Vec<String>>| {
        values.filter(|values| !values.is_empty()).map(|values| format!("{title} {}", values.join(" ")))
    };
    parts.extend(list("CUDA", facts.cuda.yes()));
    let torch = facts.python_envs.yes().into_iter().flatten().filter_map(|environment| {
        environment.packages.get("torch").map(|version| format!("torch {version} in {}", environment.path))
    });
    parts.extend(torch);
    if let Some(container) = facts.container.yes() {
        if let Some(engine) = container.engine.yes() {
            parts.push(format!("{engine} {}", word(&container.version)));
        }
        parts.extend(container.toolkit.yes().map(|version| format!("container toolkit {version}")));
    }
    parts.join(", ")
}

fn network(facts: &Facts) -> String {
    let mut parts = Vec::new();
    for interface in facts.network.yes().into_iter().flatten() {
        let addresses: Vec<String> = interface.addresses.yes().into_iter().flatten().map(ToString::to_string).collect();
        if !addresses.is_empty() {
            parts.push(format!("{} {}", interface.name, addresses.join(" ")));
        }
    }
    parts.join(", ")
}
