//! The lab's network: one bridge with a range that is free here, and a way out for apt.

use std::net::Ipv4Addr;

use sha2::{Digest, Sha256};

use super::LabError;
use super::run::{command, feed, output};
use super::state::LabState;

/// A /22 minus network, gateway and the first ten.
pub(super) const MOST_NODES: usize = 1000;

/// Prefix length of a lab.
pub(super) const PREFIX: u32 = 22;

/// Interface names have 15 characters, so they carry a digest of the lab's name.
pub(super) fn tag(lab: &str) -> String {
    Sha256::digest(lab.as_bytes()).iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

/// The bridge's name.
pub(super) fn bridge(lab: &str) -> String {
    format!("plab{}", tag(lab))
}

/// The machine's end of a node's cable.
pub(super) fn cable(lab: &str, number: usize) -> String {
    format!("pl{}-{number}", tag(lab))
}

/// The hardware address of a node, or with number 0 of the bridge. Fixed, because a peer that remembers another one
/// does not reach the node for up to half a minute.
pub(super) fn card(lab: &str, number: usize) -> String {
    let tag: Vec<String> =
        tag(lab).as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned()).collect();
    format!("02:{}:{:02x}:{:02x}", tag.join(":"), number / 256, number % 256)
}

/// The address the machine itself has in the lab.
pub(super) fn gateway(network: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(network.to_bits() + 1)
}

/// A node's address.
pub(super) fn address(network: Ipv4Addr, number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(network.to_bits() + 10 + u32::try_from(number).unwrap_or(0))
}

/// A range that neither a route nor a resolver of this machine touches.
pub(super) fn choose() -> Result<Ipv4Addr, LabError> {
    let routes = output("looking at the routes", command("ip", &["-4", "route", "show", "table", "all"]))?;
    let resolvers = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    // Another lab's range may be chosen and not yet be a route.
    let labs: String = super::state::networks().iter().map(|network| format!(" {network}/{PREFIX}")).collect();
    free(&format!("{routes}{labs}"), &resolvers).ok_or(LabError::NoRange)
}

/// The first candidate that no prefix in these texts overlaps.
fn free(routes: &str, resolvers: &str) -> Option<Ipv4Addr> {
    let taken: Vec<(u32, u32)> =
        [routes, resolvers].iter().flat_map(|text| text.split_whitespace()).filter_map(prefix).collect();
    let tens = (77..=126).map(|second| Ipv4Addr::new(10, second, 0, 0));
    let others = (20..=31).map(|second| Ipv4Addr::new(172, second, 0, 0));
    let small = (0..=63).map(|third| Ipv4Addr::new(192, 168, third * 4, 0));
    tens.chain(others).chain(small).find(|candidate| {
        taken.iter().all(|(address, length)| {
            let mask = u32::MAX.checked_shl(32 - (*length).min(PREFIX)).unwrap_or(0);
            (candidate.to_bits() ^ address) & mask != 0
        })
    })
}

/// `10.0.0.0/8` or a bare address; the default route is none.
fn prefix(word: &str) -> Option<(u32, u32)> {
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    let length = length.parse().ok().filter(|length| (1..=32).contains(length))?;
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits(), length))
}

/// Makes bridge, routes and table where they are missing.
pub(super) fn make(lab: &LabState, changed: &mut Vec<String>) -> Result<(), LabError> {
    let bridge = bridge(&lab.name);
    let range = format!("{}/{PREFIX}", lab.network);
    if !up(&bridge) {
        let doing = "making the bridge";
        if !exists(&bridge) {
            output(doing, command("ip", &["link", "add", &bridge, "address", &card(&lab.name, 0), "type", "bridge"]))?;
        }
        // Nothing for the lab may ever leave by the machine's own card, not even while there is no bridge.
        output(doing, command("ip", &["route", "replace", "unreachable", &range, "metric", "4000"]))?;
        let own = format!("{}/{PREFIX}", gateway(lab.network));
        output(doing, command("ip", &["address", "replace", &own, "dev", &bridge]))?;
        output(doing, command("ip", &["link", "set", &bridge, "up"]))?;
        changed.push(format!("made the bridge {bridge} with {range}"));
    }
    if !table_exists(&bridge) {
        let table = format!(
            "table ip {bridge} {{\n  chain out {{\n    type nat hook postrouting priority 100; policy accept;\n    \
             ip saddr {range} ip daddr != {range} masquerade\n  }}\n}}\n"
        );
        feed("letting the nodes out", command("nft", &["-f", "-"]), &table)?;
        changed.push(format!("made the nftables table {bridge}"));
    }
    // Docker and some firewalls forward nothing that is not allowed by name.
    if super::run::exists("iptables")
        && iptables(&["-S", "FORWARD"]).is_ok_and(|rules| rules.contains("-P FORWARD DROP"))
    {
        for side in ["-i", "-o"] {
            let rule = ["FORWARD", side, &bridge, "-j", "ACCEPT"];
            if iptables(&[&["-C"], rule.as_slice()].concat()).is_err() {
                iptables(&[&["-I"], rule.as_slice()].concat())?;
                changed.push(format!("allowed forwarding: iptables {}", rule.join(" ")));
            }
        }
    }
    Ok(())
}

fn iptables(arguments: &[&str]) -> Result<String, LabError> {
    output("letting the nodes through the firewall", command("iptables", &[&["-w"], arguments].concat()))
}

/// Removes what [`make`] made.
pub(super) fn remove(name: &str, lab: Option<&LabState>) -> Result<(), LabError> {
    let bridge = bridge(name);
    if super::run::exists("nft") && table_exists(&bridge) {
        output("removing the firewall table", command("nft", &["delete", "table", "ip", &bridge]))?;
    }
    if super::run::exists("iptables") {
        for side in ["-i", "-o"] {
            // Mostly there is none.
            while iptables(&["-D", "FORWARD", side, &bridge, "-j", "ACCEPT"]).is_ok() {}
        }
    }
    if exists(&bridge) {
        output("removing the bridge", command("ip", &["link", "delete", &bridge]))?;
    }
    if let Some(lab) = lab {
        let range = format!("{}/{PREFIX}", lab.network);
        // It may never have been made.
        let _ =
            output("removing the route", command("ip", &["route", "delete", "unreachable", &range, "metric", "4000"]));
    }
    Ok(())
}

/// Whether an interface is there.
pub(super) fn exists(interface: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(interface).exists()
}

fn up(bridge: &str) -> bool {
    output("looking at the bridge", command("ip", &["-4", "-o", "address", "show", "dev", bridge, "up"]))
        .is_ok_and(|text| text.contains("inet "))
}

fn table_exists(table: &str) -> bool {
    output("looking at the table", command("nft", &["list", "table", "ip", table])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_avoids_routes_and_resolvers() {
        assert_eq!(free("default via 192.0.2.1 dev eth0", ""), Some(Ipv4Addr::new(10, 77, 0, 0)));
        assert_eq!(free("10.77.2.0/24 dev br0", "nameserver 10.78.0.53"), Some(Ipv4Addr::new(10, 79, 0, 0)));
        assert_eq!(free("10.0.0.0/8 via 192.0.2.1", ""), Some(Ipv4Addr::new(172, 20, 0, 0)));
        assert_eq!(free("10.0.0.0/8 x 172.16.0.0/12 x 192.168.0.0/16", ""), None);
    }

    #[test]
    fn names_fit_interfaces() {
        assert!(cable("abcdefghijklmnopqrst", MOST_NODES).len() <= 15);
        assert!(card("lab", 1000).ends_with(":03:e8") && card("lab", 0).len() == 17);
        assert!(bridge("abcdefghijklmnopqrst").len() <= 15);
    }
}
