//! `base`: the hosts block, time, limits, sysctl, kernel modules.

use super::{NodeContext, StepOp, When, push};
use crate::diag::Finding;
use crate::facts::Known;
use crate::manifest::codes;
use crate::ops::{hosts, limits, module, package, service, sysctl};

const STEP: &str = "base";
const HOSTS: &str = "/etc/hosts";

/// Operations of `base`; the hosts block also comes with `trust` unless `hosts: none` is written.
pub fn operations(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let settings = &context.node.settings;
    let place = &context.node.place;
    let base = settings.base.clone().unwrap_or_default();
    let when = When::Node;

    if base.hosts.unwrap_or(settings.trust.is_some()) {
        push(STEP, when, place, operations, findings, hosts::hosts_block(HOSTS, &host_lines(context)));
        push(STEP, when, place, operations, findings, hosts::OwnName::new(&context.node.name, HOSTS));
    }
    // A running time service is kept, whatever it is; only a node without one gets the distribution's.
    let timeless = context.facts.is_some_and(|facts| facts.time_service == Known::No);
    if base.time.as_deref() == Some("auto") && timeless {
        let name = "systemd-timesyncd";
        let wish = package::PackageWish { name: name.to_owned(), version: None, hold: None, present: true };
        push(STEP, when, place, operations, findings, package::Packages::new("time", vec![wish]));
        push(STEP, when, place, operations, findings, service::Service::new(name, Some(true), Some(true)));
    }
    if !base.limits.is_empty() {
        let trust_user = settings.trust.as_ref().map(|trust| trust.user.clone());
        let items: Vec<(String, String)> = base.limits.clone().into_iter().collect();
        match trust_user.or_else(|| settings.ssh.user.clone()) {
            Some(user) => push(STEP, when, place, operations, findings, limits::limits(&user, &items)),
            None => findings.push(
                Finding::input(codes::MISSING, "the manifest does not say whose limits these are", Some(place.clone()))
                    .because("limits are the trust user's, else the login user's")
                    .fix("write ssh.user, or trust.user"),
            ),
        }
    }
    if !base.sysctl.is_empty() {
        let items: Vec<(String, String)> = base.sysctl.clone().into_iter().collect();
        push(STEP, when, place, operations, findings, sysctl::sysctl_file(&items));
        for (key, value) in &items {
            push(STEP, when, place, operations, findings, sysctl::Sysctl::new(key, value));
        }
    }
    if !base.modules.is_empty() {
        push(STEP, when, place, operations, findings, module::modules_file(&base.modules));
        for name in &base.modules {
            push(STEP, when, place, operations, findings, module::Module::new(name));
        }
    }
}

/// One line for each node whose address is known: address, name, short name.
fn host_lines(context: &NodeContext<'_>) -> Vec<(String, Vec<String>)> {
    let manifest = context.manifest;
    let line = |node| {
        let address = super::trust::address_of(context, node)?;
        Some((address.to_string(), super::trust::plain_names(manifest, node)))
    };
    manifest.nodes.iter().filter_map(line).collect()
}
