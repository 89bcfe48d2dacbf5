//! Who the node is: identity, operating system, session, time, disks.

use std::collections::BTreeMap;

use super::super::known::Known;
use super::super::model::{Facts, Limits, Memlock, Os, PackageManager};
use super::Answers;
use super::text::{self, MOST};

/// Reads identity, operating system, session, time service and disks.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    facts.machine_id =
        Known::read(answers.file("etc/machine-id").filter(|id| text::hex(id, 32)).map(str::to_ascii_lowercase));
    facts.boot_id = Known::read(
        answers.file("proc/sys/kernel/random/boot_id").and_then(|id| text::groups(id, '-', &[8, 4, 4, 4, 12])),
    );
    facts.hostname = Known::read(answers.file("proc/sys/kernel/hostname").and_then(text::name));
    facts.os = os(answers);
    facts.host_keys = host_keys(answers);
    facts.uid = Known::read(answers.mark("uid").and_then(|uid| uid.parse().ok()));
    facts.systemd = Known::read(yes_or_no(answers.mark("systemd")));
    facts.package_manager = match answers.mark("package_manager") {
        Some("apt") => Known::Yes(PackageManager::Apt),
        Some("dnf") => Known::Yes(PackageManager::Dnf),
        Some("none") => Known::No,
        _ => Known::Unknown,
    };
    facts.time_service = time_service(answers);
    facts.time_synced = Known::read(yes_or_no(answers.lines("synced").next()));
    facts.disk_free = disks(answers);
    facts.limits = memlock(answers);
}

fn yes_or_no(word: Option<&str>) -> Option<bool> {
    match word? {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn os(answers: &mut Answers<'_>) -> Known<Os> {
    if !answers.has_files() {
        return Known::Unknown;
    }
    let release = |key: &str| {
        let lines = answers.files.get("etc/os-release")?;
        lines.iter().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('=')).map(unquoted).next_back()
    };
    let stream = release("NAME").is_some_and(|name| name == "CentOS Stream");
    let id = release("ID")
        .and_then(text::name)
        .map(|id| if id == "centos" && stream { "centos-stream".to_owned() } else { id.to_ascii_lowercase() });
    let os = Os {
        id: Known::read(id),
        version: Known::read(release("VERSION_ID").and_then(text::word)),
        kernel: Known::read(answers.file("proc/sys/kernel/osrelease").and_then(text::word)),
        arch: Known::read(
            answers.file("proc/sys/kernel/arch").or_else(|| answers.lines("arch").next()).and_then(text::name),
        ),
        glibc: Known::read(
            answers.lines("glibc").next().and_then(|line| line.strip_prefix("glibc ")).and_then(text::numbers),
        ),
        secure_boot: secure_boot(answers),
    };
    if os.id.is_unknown() {
        answers.problem("/etc/os-release", "no ID that could be read");
    }
    Known::Yes(os)
}

/// A value of os-release without its quotes.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(value)
}

/// The variable is four bytes of attributes, then 0 or 1.
fn secure_boot(answers: &Answers<'_>) -> Known<bool> {
    let Some(line) = answers.lines("secure_boot").next() else { return Known::Unknown };
    if line == "none" {
        return Known::Yes(false);
    }
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [_, _, _, _, "0"] => Known::Yes(false),
        [_, _, _, _, "1"] => Known::Yes(true),
        _ => Known::Unknown,
    }
}

/// Public keys, printed anew from type and base64; comments are dropped.
fn host_keys(answers: &Answers<'_>) -> Known<Vec<String>> {
    if !answers.has_files() {
        return Known::Unknown;
    }
    let mut keys: Vec<String> = answers
        .files
        .iter()
        .filter(|(path, _)| path.starts_with("etc/ssh/ssh_host_"))
        .filter_map(|(_, lines)| lines.first().and_then(|line| public_key(line)))
        .take(16)
        .collect();
    keys.sort();
    Known::Yes(keys)
}

/// `TYPE BASE64` of a public key, when the base64 names the same type inside.
fn public_key(line: &str) -> Option<String> {
    use base64::Engine;
    let mut fields = line.split_whitespace();
    let (kind, blob) = (fields.next()?, fields.next()?);
    if blob.len() > 8192 {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(blob).ok()?;
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    if rest.get(..length)? != kind.as_bytes() {
        return None;
    }
    text::word(kind).map(|kind| format!("{kind} {blob}"))
}

fn time_service(answers: &Answers<'_>) -> Known<String> {
    if answers.mark("units").is_none() {
        return Known::Unknown;
    }
    let services = ["chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpsec", "ntpd", "openntpd"];
    Known::asked(services.into_iter().find(|unit| answers.running(unit) == Some(true)).map(str::to_owned))
}

/// Free bytes by mount point; the columns are found from the one with the percent sign, because devices may have blanks.
fn disks(answers: &Answers<'_>) -> Known<BTreeMap<String, u64>> {
    let mut free = BTreeMap::new();
    for line in answers.lines("disks").take(MOST) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(percent) = fields.iter().position(|field| field.ends_with('%')) else { continue };
        let available = percent.checked_sub(1).and_then(|at| fields.get(at)).and_then(|kib| kib.parse::<u64>().ok());
        let mount = fields.get(percent + 1..).map(|rest| rest.join(" ")).and_then(|mount| text::path(&mount));
        if let (Some(available), Some(mount)) = (available, mount) {
            free.insert(mount, available.saturating_mul(1024));
        }
    }
    if free.is_empty() { Known::Unknown } else { Known::Yes(free) }
}

/// `ulimit -l` counts in KiB.
fn memlock(answers: &Answers<'_>) -> Known<Limits> {
    let memlock = match answers.lines("memlock").next() {
        Some("unlimited") => Known::Yes(Memlock::Unlimited),
        Some(kib) => Known::read(kib.parse::<u64>().ok().map(|kib| Memlock::Bytes(kib.saturating_mul(1024)))),
        None => Known::Unknown,
    };
    if memlock.is_unknown() { Known::Unknown } else { Known::Yes(Limits { memlock }) }
}
