//! Installed software: packages, toolkits, libraries, containers, repositories, settings.

use std::collections::{BTreeMap, BTreeSet};

use super::super::known::Known;
use super::super::model::{Container, Facts, Library};
use super::text::{self, MOST};
use super::{Answers, Packages};

/// Reads everything that is installed, except what lives in Python environments.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    if answers.has("libraries") {
        libraries(answers, facts);
    }
    facts.container = container(answers);
    facts.images = images(answers, facts.container.yes());
    if answers.has("settings") {
        settings(answers, facts);
    }
    if answers.has("repos") {
        facts.repos = Known::Yes(repos(answers));
    }
    if let Some(packages) = &answers.packages {
        facts.holds = Known::Yes(packages.held.clone());
    }
}

/// dpkg's and rpm's list; none when neither came to its end, because then absence says nothing.
pub(super) fn packages<'a>(answers: &Answers<'a>) -> Option<Packages<'a>> {
    let mut packages = Packages::default();
    let mut whole = false;
    for line in answers.lines("dpkg") {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["whole"] => whole = true,
            [status, name, rest @ ..] => {
                if status.starts_with('h') && packages.held.len() < MOST {
                    packages.held.extend(text::name(name));
                }
                if let (Some("i"), [version]) = (status.get(1..2), rest) {
                    packages.installed.insert(name, version);
                }
            }
            _ => {}
        }
    }
    for line in answers.lines("rpm") {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["whole"] => whole = true,
            [name, version] => {
                packages.installed.insert(name, version);
            }
            _ => {}
        }
    }
    packages.held.extend(answers.lines("versionlock").map(str::trim).take(MOST).filter_map(text::word));
    whole.then_some(packages)
}

/// Toolkits by their directories, libraries by their file names, interpreters.
fn libraries(answers: &Answers<'_>, facts: &mut Facts) {
    let (mut cuda, mut compat, mut python) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut cudnn, mut nccl) = (Vec::new(), Vec::new());
    let mut unnamed = false;
    let dashed = |version: &str| (text::order(version), text::leading(version, 2).replace('.', "-"));
    let dotted = |version: &str| (text::order(&text::leading(version, 2)), text::leading(version, 2));
    for line in answers.lines("libraries").take(4 * MOST) {
        match line.split_once(' ') {
            Some(("cuda", directory)) => {
                let version = directory.strip_prefix("cuda-").and_then(text::numbers);
                unnamed = version.is_none();
                cuda.extend(version.map(|version| dotted(&version)));
            }
            Some(("compat", directory)) => {
                compat.extend(directory.strip_prefix("cuda-").and_then(text::numbers).map(|version| dashed(&version)));
            }
            Some(("library", path)) => {
                let file = path.rsplit('/').next().unwrap_or_default();
                let list = match file.split_once(".so.") {
                    Some(("libcudnn", version)) => text::numbers(version).map(|version| (&mut cudnn, version)),
                    Some(("libnccl", version)) => text::numbers(version).map(|version| (&mut nccl, version)),
                    _ => None,
                };
                if let (Some((list, version)), Some(path)) = (list, text::path(path)) {
                    let origin = Known::Yes("system".to_owned());
                    list.push(Library { version: text::leading(&version, 3), origin, path: Known::Yes(path) });
                }
            }
            Some(("python", version)) => {
                let version = text::numbers(version).filter(|version| version.split('.').count() == 2);
                python.extend(version.map(|version| dotted(&version)));
            }
            _ if unnamed && line.trim_start().starts_with("\"version\"") => {
                let version = line.rsplit(':').next().unwrap_or_default().trim().trim_matches(['"', ',']);
                cuda.extend(text::numbers(version).map(|version| dotted(&version)));
                unnamed = false;
            }
            _ => {}
        }
    }
    if let Some(packages) = &answers.packages {
        let toolkit = packages.installed.get("nvidia-cuda-toolkit").and_then(|version| text::upstream(version));
        cuda.extend(toolkit.map(|version| dotted(&version)));
        for name in packages.installed.keys() {
            let version = name.strip_prefix("cuda-compat-").map(|version| version.replace('-', "."));
            compat.extend(version.and_then(|version| text::numbers(&version)).map(|version| dashed(&version)));
        }
    }
    let texts = |set: BTreeSet<(Vec<u64>, String)>| set.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    facts.cuda = Known::Yes(texts(cuda));
    facts.cuda_compat = Known::asked(texts(compat).pop());
    facts.python = Known::Yes(texts(python));
    cudnn.truncate(MOST);
    nccl.truncate(MOST);
    facts.cudnn = Known::Yes(cudnn);
    facts.nccl = Known::Yes(nccl);
}

fn container(answers: &Answers<'_>) -> Known<Container> {
    if !answers.has("container") {
        return Known::Unknown;
    }
    let said: BTreeSet<(&str, &str)> =
        answers.lines("container").take(MOST).filter_map(|line| line.split_once('=')).collect();
    let known = [("dockerd", "docker"), ("podman", "podman"), ("containerd", "containerd"), ("crio", "cri-o")];
    let engine = known.into_iter().find(|(program, _)| said.contains(&("engine", *program))).map(|(_, name)| name);
    let asked: Vec<&str> = answers.lines("docker").next().unwrap_or_default().split_whitespace().collect();
    let package = |names: &[&str]| {
        let packages = answers.packages.as_ref()?;
        names.iter().find_map(|name| text::upstream(packages.installed.get(name)?))
    };
    let (version, driver) = match (engine, asked.as_slice()) {
        (Some("docker"), [version, driver, _]) => (text::upstream(version), text::name(driver)),
        (Some("docker"), _) => (package(&["docker-ce", "docker.io", "moby-engine", "docker"]), None),
        (Some("podman"), _) => (package(&["podman"]), None),
        (Some("containerd"), _) => (package(&["containerd.io", "containerd"]), None),
        (Some("cri-o"), _) => (package(&["cri-o"]), None),
        _ => (None, None),
    };
    let ctk = answers.lines("ctk").find_map(|line| text::upstream(line.rsplit(' ').next()?));
    let toolkit = package(&["nvidia-container-toolkit"]).or(ctk);
    if engine.is_none() && toolkit.is_none() {
        return Known::No;
    }
    Known::Yes(Container {
        engine: Known::asked(engine.map(str::to_owned)),
        version: if engine.is_none() { Known::No } else { Known::read(version) },
        toolkit: match toolkit {
            None if answers.packages.is_none() => Known::Unknown,
            toolkit => Known::asked(toolkit),
        },
        cgroup: [1, 2]
            .into_iter()
            .find(|number| said.contains(&("cgroup", number.to_string().as_str())))
            .map_or(Known::Unknown, Known::Yes),
        cgroup_driver: Known::read(driver),
    })
}

/// Docker's images; without an engine there are none, with one that does not run nobody knows.
fn images(answers: &Answers<'_>, container: Option<&Container>) -> Known<Vec<String>> {
    if answers.has("images") {
        let tagged = |line: &&str| !line.contains("<none>");
        let mut images: Vec<String> =
            answers.lines("images").filter(tagged).filter_map(text::name).take(MOST).collect();
        images.sort();
        images.dedup();
        return Known::Yes(images);
    }
    let no_engine = answers.has("container") && container.is_none_or(|container| container.engine == Known::No);
    if no_engine { Known::Yes(Vec::new()) } else { Known::Unknown }
}

/// NCCL's variables (the environment counts before nccl.conf), and whether packages move by themselves.
fn settings(answers: &Answers<'_>, facts: &mut Facts) {
    let mut variables = BTreeMap::new();
    let (mut periodic, mut timer, mut applies) = (false, None, false);
    for line in answers.lines("settings").take(MOST) {
        let Some((path, content)) = line.split_once(':') else { continue };
        let content = content.trim();
        match path {
            "etc/nccl.conf" | "etc/environment" => {
                let content = content.strip_prefix("export ").unwrap_or(content);
                let Some((key, value)) = content.split_once('=') else { continue };
                let value = value.trim().trim_matches(['"', '\'']);
                let key = text::name(key.trim()).filter(|key| key.starts_with("NCCL_"));
                if let (Some(key), Some(value)) = (key, text::word(value)) {
                    variables.insert(key, value);
                }
            }
            "dnf-timer" => timer = Some(content),
            "etc/dnf/automatic.conf" => {
                applies = content
                    .split('=')
                    .nth(1)
                    .is_some_and(|value| ["yes", "true", "1"].contains(&value.trim().to_ascii_lowercase().as_str()))
            }
            _ => {
                if let Some(value) = content.strip_prefix("APT::Periodic::Unattended-Upgrade") {
                    periodic = !["0", ""].contains(&value.trim().trim_end_matches(';').trim_matches('"'));
                }
            }
        }
    }
    facts.nccl_env = Known::Yes(variables);
    facts.unattended_upgrades = match (&answers.packages, answers.mark("package_manager")) {
        (Some(packages), Some("apt")) => Known::Yes(periodic && packages.installed.contains_key("unattended-upgrades")),
        (_, Some("dnf")) => Known::Yes(timer == Some("install") || (timer.is_some() && applies)),
        _ => Known::Unknown,
    };
}

/// Entries of apt (both forms) and dnf that are switched on.
fn repos(answers: &Answers<'_>) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut stanza = Stanza::default();
    for line in answers.lines("repos").take(4 * MOST) {
        let Some((path, content)) = line.split_once(':') else { continue };
        let content = content.trim();
        if path != stanza.path || content.is_empty() || content.starts_with('[') {
            stanza.finish(&mut found);
            stanza = Stanza { path, ..Stanza::default() };
        }
        if let Some(entry) = content.strip_prefix("deb ") {
            let entry = entry.trim_start();
            let entry = if entry.starts_with('[') { entry.split_once(']').map_or("", |(_, rest)| rest) } else { entry };
            let mut words = entry.split_whitespace();
            if let (Some(url), Some(suite)) = (words.next().and_then(text::url), words.next().and_then(text::word)) {
                found.insert(format!("{url} {suite}"));
            }
            continue;
        }
        let separator = if path.starts_with("etc/apt/") { ':' } else { '=' };
        let Some((key, value)) = content.split_once(separator) else { continue };
        let value = value.trim();
        match key.trim() {
            "URIs" | "baseurl" => stanza.urls = value.split_whitespace().filter_map(text::url).collect(),
            "mirrorlist" | "metalink" if stanza.urls.is_empty() => stanza.urls.extend(text::url(value)),
            "Suites" => stanza.suites = value.split_whitespace().filter_map(text::word).collect(),
            "Types" => stanza.off |= !value.split_whitespace().any(|kind| kind == "deb"),
            "Enabled" | "enabled" => stanza.off |= ["0", "no", "false"].contains(&value.to_ascii_lowercase().as_str()),
            _ => {}
        }
    }
    stanza.finish(&mut found);
    found.into_iter().take(MOST).collect()
}

/// A repository that is written over several lines.
#[derive(Default)]
struct Stanza<'a> {
    path: &'a str,
    urls: Vec<String>,
    suites: Vec<String>,
    off: bool,
}

impl Stanza<'_> {
    fn finish(&self, found: &mut BTreeSet<String>) {
        if self.off {
            return;
        }
        for url in &self.urls {
            if self.suites.is_empty() {
                found.insert(url.clone());
            }
            found.extend(self.suites.iter().map(|suite| format!("{url} {suite}")));
        }
    }
}
