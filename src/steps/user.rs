//! The user's own: `packages`, `files`, `services`, `commands`.

use super::{NodeContext, StepOp, When, push};
use crate::diag::Finding;
use crate::manifest::codes;
use crate::manifest::model::{FileState, FileWish, Piece, Text};
use crate::ops::file::{AbsentFile, Content, File, Ownership};
use crate::ops::{Reaction, command, directory, package, service, symlink};
use crate::render;
use crate::secret::Secret;

/// Operations of `packages`, `files`, `services` and `commands`, in this order: a file may belong to a package's user, a
/// service may need its file, a command may need all of them.
pub fn operations(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let settings = &context.node.settings;
    let when = When::Node;

    if let Some(first) = settings.packages.first() {
        let wishes = settings.packages.iter().map(|wish| package::PackageWish {
            name: wish.name.clone(),
            version: wish.version.clone(),
            hold: wish.hold,
            present: wish.present,
        });
        let made = package::Packages::new("packages", wishes.collect());
        push("packages", when, &first.place, operations, findings, made);
    }
    for wish in &settings.files {
        file(context, wish, operations, findings);
    }
    for wish in &settings.services {
        let made = service::Service::new(&wish.name, wish.enabled, wish.running);
        push("services", when, &wish.place, operations, findings, made);
    }
    for wish in &settings.commands {
        let parts = fill(context, &wish.check, false).and_then(|check| Ok((check, fill(context, &wish.apply, false)?)));
        match parts {
            Ok(((check, hidden), (apply, secret))) => {
                let user = wish.user.as_deref().unwrap_or("root");
                let made = command::Command::new(&wish.name, &check, &apply, user, hidden || secret);
                push("commands", when, &wish.place, operations, findings, made);
            }
            Err(why) => findings.push(Finding::input(codes::BAD_VALUE, why, Some(wish.place.clone()))),
        }
    }
}

fn file(context: &NodeContext<'_>, wish: &FileWish, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let ownership = Ownership { owner: text(&wish.owner), group: text(&wish.group), mode: text(&wish.mode) };
    let reactions: Vec<Reaction> =
        wish.restart.iter().map(|unit| Reaction::Restart(service::unit_name(unit))).collect();
    let (step, when, place) = ("files", When::Node, &wish.place);
    let content = match &wish.what {
        FileState::Directory => {
            return push(step, when, place, operations, findings, directory::Directory::new(&wish.path, ownership));
        }
        FileState::Link(target) => {
            return push(step, when, place, operations, findings, symlink::Symlink::new(&wish.path, target));
        }
        FileState::Absent => {
            return push(step, when, place, operations, findings, AbsentFile::new(&wish.path, reactions));
        }
        FileState::Present => Ok(Content::Any),
        FileState::Content(text) => fill(context, text, true).map(|(text, secret)| {
            if secret { secret_content(context, text) } else { Content::Bytes(text.into_bytes()) }
        }),
        FileState::Source(path) => side_file(context, path).map(|bytes| Content::Bytes(bytes.to_vec())),
        FileState::Template(path) => side_file(context, path)
            .and_then(|bytes| std::str::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text")))
            .and_then(|text| render_text(context, text))
            .map(|text| Content::Bytes(text.into_bytes())),
    };
    match content {
        Ok(content) => {
            let secret = matches!(content, Content::Secret { .. });
            let mut ownership = ownership;
            if secret && ownership.mode.is_empty() {
                // Who keeps a secret and says nothing of the mode does not mean everybody.
                "0600".clone_into(&mut ownership.mode);
            }
            let made = File::new(&wish.path, content, ownership).map(|file| file.triggering(reactions));
            push(step, when, place, operations, findings, made);
        }
        Err(why) => findings.push(
            Finding::input(codes::BAD_VALUE, format!("{}: {why}", wish.path), Some(place.clone()))
                .fix("`{{ node.name }}`, `{{ node.address }}`, `{{ node.groups }}`, `{{ cluster.name }}` and `{{ cluster.nodes }}` can be filled in"),
        ),
    }
}

/// A secret's digest is salted by the node's machine-id, so that equal secrets look different on different nodes.
fn secret_content(context: &NodeContext<'_>, text: String) -> Content {
    let salt = context.facts.and_then(|facts| facts.machine_id.yes().cloned()).unwrap_or_default();
    Content::Secret { text: Secret::new(text), salt }
}

fn side_file<'a>(context: &NodeContext<'a>, path: &str) -> Result<&'a [u8], String> {
    context.files.get(path).map(Vec::as_slice).ok_or_else(|| format!("{path} was not read"))
}

/// Fills in `{{ node.name }}` first and secrets after, so that a secret is never taken for a template.
fn fill(context: &NodeContext<'_>, text: &Text, template: bool) -> Result<(String, bool), String> {
    // Each secret becomes a mark that no template or manifest can hold (NUL is refused by the loader).
    let mut secrets = Vec::new();
    let mut marked = String::new();
    for piece in &text.pieces {
        match piece {
            Piece::Literal(literal) => marked.push_str(literal),
            Piece::Secret(reference) => {
                let value = context.secrets.get(reference).ok_or_else(|| format!("{reference} was not resolved"))?;
                marked.push_str(&format!("\0{}\0", secrets.len()));
                secrets.push(value);
            }
        }
    }
    let mut filled = if template { render_text(context, &marked)? } else { marked };
    for (index, value) in secrets.iter().enumerate() {
        filled = filled.replace(&format!("\0{index}\0"), value.reveal());
    }
    Ok((filled, !secrets.is_empty()))
}

/// `{{ node.name }}`, `{{ node.address }}`, `{{ node.groups }}`, `{{ cluster.name }}`, `{{ cluster.nodes }}`.
fn render_text(context: &NodeContext<'_>, text: &str) -> Result<String, String> {
    let node = context.node;
    let names: Vec<&str> = context.manifest.nodes.iter().map(|node| node.name.as_str()).collect();
    let groups: Vec<&str> = node.groups.iter().map(String::as_str).collect();
    let values = serde_json::json!({
        "node": {"name": node.name, "address": node.address, "groups": groups},
        "cluster": {"name": context.manifest.cluster, "nodes": names},
    });
    render::document(text, &values)
}
