//! Network interfaces, the node's own name in /etc/hosts, RDMA devices.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::super::known::Known;
use super::super::model::{Facts, Interface, Rdma, RdmaDevice};
use super::Answers;
use super::text::{self, MOST};

/// Reads interfaces, hosts and RDMA.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    if answers.has("addresses") {
        facts.network = addresses(answers);
    } else if answers.has("interfaces") {
        facts.network = interfaces(answers);
    }
    if answers.has("hosts") {
        facts.hosts_self = Known::asked(hosts_self(answers, facts.hostname.yes()));
    }
    facts.rdma = rdma(answers);
}

/// `ip address show`: a line with the interface, indented ones with its addresses.
fn addresses(answers: &mut Answers<'_>) -> Known<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for line in answers.lines("addresses").take(4 * MOST) {
        let mut words = line.split_whitespace();
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            let name = words.nth(1).and_then(|word| text::name(word.trim_end_matches(':').split('@').next()?));
            let Some(name) = name else {
                answers.problem("ip address", line);
                continue;
            };
            let words: Vec<&str> = words.collect();
            let after = |key: &str| words.iter().skip_while(|word| **word != key).nth(1);
            found.push(Interface {
                name,
                mtu: Known::read(after("mtu").and_then(|mtu| mtu.parse().ok())),
                state: Known::read(after("state").and_then(|state| state_name(state))),
                addresses: Known::Yes(Vec::new()),
            });
        } else if let Some("inet" | "inet6") = words.next()
            && let Some(Interface { addresses: Known::Yes(list), .. }) = found.last_mut()
        {
            match words.next().unwrap_or_default().parse() {
                Ok(address) if list.len() < MOST => list.push(address),
                Ok(_) => {}
                Err(_) => answers.problem("ip address", line),
            }
        }
    }
    if found.is_empty() {
        return Known::Unknown;
    }
    found.retain(|interface| interface.name != "lo");
    Known::Yes(found)
}

fn state_name(state: &str) -> Option<String> {
    text::name(state).map(|state| state.to_ascii_lowercase())
}

/// Where there is no `ip`: names, sizes and states from /sys; the addresses stay unknown.
fn interfaces(answers: &Answers<'_>) -> Known<Vec<Interface>> {
    let mut found: BTreeMap<String, Interface> = BTreeMap::new();
    for line in answers.lines("interfaces").take(2 * MOST) {
        let Some((path, value)) = line.split_once(':') else { continue };
        let Some((name, file)) = path.strip_prefix("sys/class/net/").and_then(|path| path.split_once('/')) else {
            continue;
        };
        let Some(name) = text::name(name).filter(|name| name != "lo") else { continue };
        let entry = found.entry(name.clone()).or_insert_with(|| Interface { name, ..Interface::default() });
        match file {
            "mtu" => entry.mtu = Known::read(value.parse().ok()),
            "operstate" => entry.state = Known::read(state_name(value)),
            _ => {}
        }
    }
    Known::Yes(found.into_values().collect())
}

/// The address /etc/hosts gives for the node's own name: the first, as the resolver takes it.
fn hosts_self(answers: &Answers<'_>, hostname: Option<&String>) -> Option<IpAddr> {
    let hostname = hostname?;
    let short = hostname.split('.').next()?;
    answers.lines("hosts").take(MOST).find_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(hostname) || word.eq_ignore_ascii_case(short)).then_some(address)
    })
}

fn rdma(answers: &Answers<'_>) -> Known<Rdma> {
    let devices = match answers.mark("rdma") {
        Some("no") => Vec::new(),
        Some("yes") if answers.has_files() => devices(answers),
        _ => return Known::Unknown,
    };
    let ofed = answers.lines("ofed").next().unwrap_or_default();
    let doca = answers
        .packages
        .as_ref()
        .is_some_and(|packages| packages.installed.keys().any(|name| name.starts_with("doca-ofed")));
    let stack = match answers.mark("ofed") {
        Some("no") if devices.is_empty() => Known::No,
        Some("no") => Known::Yes("inbox"),
        _ if doca || ofed.starts_with("OFED-internal-") => Known::Yes("doca"),
        _ if ofed.starts_with("MLNX_OFED") => Known::Yes("mlnx-ofed"),
        _ => Known::Unknown,
    };
    let stack = match stack {
        Known::Yes(stack) => Known::Yes(stack.to_owned()),
        Known::No => Known::No,
        Known::Unknown => Known::Unknown,
    };
    Known::Yes(Rdma { stack, devices: Known::Yes(devices) })
}

fn devices(answers: &Answers<'_>) -> Vec<RdmaDevice> {
    let mut found: BTreeMap<String, RdmaDevice> = BTreeMap::new();
    for (path, lines) in &answers.files {
        let Some((name, file)) = path.strip_prefix("sys/class/infiniband/").and_then(|path| path.split_once('/'))
        else {
            continue;
        };
        let (Some(name), Some(line)) = (text::name(name), lines.first()) else { continue };
        let device = found.entry(name.clone()).or_insert_with(|| RdmaDevice { name, ..RdmaDevice::default() });
        match file {
            "node_guid" => device.guid = Known::read(text::groups(line, ':', &[4, 4, 4, 4])),
            // `4: ACTIVE`
            "ports/1/state" => {
                device.state = Known::read(line.split_once(": ").and_then(|(_, state)| text::name(state)));
            }
            "ports/1/link_layer" => device.link_layer = Known::read(text::name(line)),
            // `200 Gb/sec (4X HDR)`
            "ports/1/rate" => {
                let rate = line.split_once(" Gb/sec").and_then(|(rate, _)| rate.split('.').next()?.parse().ok());
                device.rate_gbps = Known::read(rate);
            }
            _ => {}
        }
    }
    if answers.has("gids") {
        let indices = gids(answers);
        for device in found.values_mut() {
            device.gid_v2 = Known::asked(indices.get(device.name.as_str()).copied());
        }
    }
    found.into_values().collect()
}

/// For each device the lowest index that is both an IPv4 address and RoCE v2.
fn gids<'a>(answers: &Answers<'a>) -> BTreeMap<&'a str, u32> {
    let (mut mapped, mut second) = (BTreeSet::new(), BTreeSet::new());
    for line in answers.lines("gids").take(64 * MOST) {
        let Some((path, value)) = line.split_once(':') else { continue };
        let parts = path.strip_prefix("sys/class/infiniband/").and_then(|path| path.split_once("/ports/1/"));
        let Some((device, file)) = parts else { continue };
        if let Some(index) = file.strip_prefix("gids/").and_then(|index| index.parse::<u32>().ok()) {
            if value.starts_with("0000:0000:0000:0000:0000:ffff:") {
                mapped.insert((device, index));
            }
        } else if let Some(index) = file.strip_prefix("gid_attrs/types/").and_then(|index| index.parse::<u32>().ok())
            && value == "RoCE v2"
        {
            second.insert((device, index));
        }
    }
    let mut lowest = BTreeMap::new();
    for (device, index) in mapped.intersection(&second) {
        lowest.entry(*device).or_insert(*index);
    }
    lowest
}
