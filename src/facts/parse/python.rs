//! Python environments: the names of the metadata folders beside the packages say what is installed.

use std::collections::BTreeMap;

use super::super::known::Known;
use super::super::model::{Environment, Facts, Library};
use super::Answers;
use super::text::{self, MOST};

/// Reads environments, and the CUDA libraries that came into them as wheels.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    if !answers.has("environments") {
        return;
    }
    let mut found: Vec<Environment> = Vec::new();
    let mut skipping = false;
    for line in answers.lines("environments").take(64 * MOST) {
        if let Some(rest) = line.strip_prefix("environment ") {
            let environment = rest.split_once(' ').and_then(|(python, path)| {
                let python = Known::read(text::numbers(python));
                Some(Environment { path: text::path(path)?, python, packages: BTreeMap::new() })
            });
            skipping = environment.is_none() || found.len() >= MOST;
            if let Some(environment) = environment.filter(|_| !skipping) {
                found.push(environment);
            }
        } else if let Some((name, version)) = package(line)
            && let Some(environment) = found.last_mut().filter(|_| !skipping)
            && environment.packages.len() < MOST
        {
            environment.packages.insert(name, version);
        }
    }
    wheels(&found, "nvidia-cudnn-cu", &mut facts.cudnn);
    wheels(&found, "nvidia-nccl-cu", &mut facts.nccl);
    facts.python_envs = Known::Yes(found);
}

/// `torch-2.4.0+cu124.dist-info`, `torch-2.4.0-py3.11.egg-info`: name (normalised) and version.
fn package(folder: &str) -> Option<(String, String)> {
    let (stem, egg) = match folder.strip_suffix(".dist-info") {
        Some(stem) => (stem, false),
        None => (folder.strip_suffix(".egg-info")?, true),
    };
    let (name, version) = stem.split_once('-')?;
    let version = if egg { version.split("-py").next()? } else { version };
    let name = text::name(name)?.to_ascii_lowercase().replace(['_', '.'], "-");
    Some((name, text::version(version)?))
}

/// Adds the libraries of wheels; `path` is the environment they belong to.
fn wheels(environments: &[Environment], prefix: &str, list: &mut Known<Vec<Library>>) {
    let Known::Yes(list) = list else { return };
    for environment in environments {
        for (_, version) in environment.packages.iter().filter(|(name, _)| name.starts_with(prefix)) {
            list.push(Library {
                version: text::leading(version, 3),
                origin: Known::Yes("wheel".to_owned()),
                path: Known::Yes(environment.path.clone()),
            });
        }
    }
}
