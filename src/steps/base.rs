//! `base`: the hosts block, time, limits, sysctl, kernel modules.

use super::{NodeContext, StepOp, When};
use crate::diag::Finding;
use crate::ops::{Op, hosts, limits, module, package, service, sysctl};

/// Operations of `base`; the hosts block also comes with `trust` unless `hosts: none` is written.
pub fn operations(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, _findings: &mut Vec<Finding>) {
    let settings = &context.node.settings;
    let mut push = |op: Box<dyn Op>| operations.push(StepOp { step: "base", when: When::Node, op });
    let base = settings.base.clone().unwrap_or_default();

    if base.hosts.unwrap_or(settings.trust.is_some()) {
        push(Box::new(hosts::Hosts::new(&context.node.name, host_lines(context))));
    }
    if base.time.as_deref() == Some("auto") {
        // A running time service is kept, whatever it is; only a node without one gets the distribution's.
        let running = context.facts.is_some_and(|facts| facts.time_service.yes().is_some());
        if !running {
            let (name, unit) = ("systemd-timesyncd", "systemd-timesyncd");
            let wish = package::Wish { name: name.to_owned(), version: None, hold: None, present: true };
            push(Box::new(package::Packages::new("time", vec![wish])));
            push(Box::new(service::Service::new(unit, Some(true), Some(true))));
        }
    }
    if !base.limits.is_empty() {
        let trust_user = settings.trust.as_ref().map(|trust| trust.user.clone());
        let user = trust_user.or_else(|| settings.ssh.user.clone()).unwrap_or_else(|| "root".to_owned());
        push(Box::new(limits::Limits::new(&user, &base.limits)));
    }
    if !base.sysctl.is_empty() {
        push(Box::new(sysctl::Sysctl::new(&base.sysctl)));
    }
    for name in &base.modules {
        push(Box::new(module::Module::new(name)));
    }
}

/// One line for each node whose address is known: address, name, short name.
fn host_lines(context: &NodeContext<'_>) -> Vec<(std::net::IpAddr, Vec<String>)> {
    let manifest = context.manifest;
    manifest
        .nodes
        .iter()
        .filter_map(|node| {
            let address = super::trust::address_of(context, node)?;
            Some((address, super::trust::plain_names(manifest, node)))
        })
        .collect()
}
