//! The user's own: `packages`, `files`, `services`, `commands`.

use super::{NodeContext, StepOp, When};
use crate::diag::Finding;
use crate::manifest::codes;
use crate::manifest::model::{FileState, FileWish, Piece, Text};
use crate::ops::{Op, Reaction, command, directory, file, package, service, symlink};
use crate::render;

/// Operations of `packages`, `files`, `services` and `commands`, in this order: a file may belong to a package's user, a
/// service may need its file, a command may need all of them.
pub fn operations(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let settings = &context.node.settings;
    let mut push = |step: &'static str, op: Box<dyn Op>| operations.push(StepOp { step, when: When::Node, op });

    if !settings.packages.is_empty() {
        let wishes = settings.packages.iter().map(|wish| package::Wish {
            name: wish.name.clone(),
            version: wish.version.clone(),
            hold: wish.hold,
            present: wish.present,
        });
        push("packages", Box::new(package::Packages::new("packages", wishes.collect())));
    }
    for wish in &settings.files {
        match file_op(context, wish) {
            Ok(op) => push("files", op),
            Err(finding) => findings.push(finding),
        }
    }
    for wish in &settings.services {
        push("services", Box::new(service::Service::new(&wish.name, wish.enabled, wish.running)));
    }
    for wish in &settings.commands {
        let parts = resolve(context, &wish.check).and_then(|check| Ok((check, resolve(context, &wish.apply)?)));
        match parts {
            Ok((check, apply)) => push(
                "commands",
                Box::new(command::Command {
                    name: wish.name.clone(),
                    check: check.0,
                    apply: apply.0,
                    secret: check.1 || apply.1,
                    user: wish.user.clone(),
                }),
            ),
            Err(why) => findings.push(Finding::input(codes::BAD_VALUE, why, Some(wish.place.clone()))),
        }
    }
}

fn file_op(context: &NodeContext<'_>, wish: &FileWish) -> Result<Box<dyn Op>, Finding> {
    let fail = |why: String| Finding::input(codes::BAD_VALUE, format!("{}: {why}", wish.path), Some(wish.place.clone()));
    let reactions: Vec<Reaction> = wish.restart.iter().cloned().map(Reaction::Restart).collect();
    let attributes =
        file::Attributes { owner: wish.owner.clone(), group: wish.group.clone(), mode: wish.mode.clone() };
    let content = match &wish.what {
        FileState::Content(text) => Some(text_content(context, text).map_err(fail)?),
        FileState::Source(path) => {
            Some((side_file(context, path).map_err(fail)?.to_vec(), false))
        }
        FileState::Template(path) => {
            let bytes = side_file(context, path).map_err(fail)?;
            let text = std::str::from_utf8(bytes).map_err(|_| fail(format!("{path} is not UTF-8 text")))?;
            Some((render_text(context, text).map_err(fail)?.into_bytes(), false))
        }
        FileState::Directory => {
            return Ok(Box::new(directory::Directory::new(&wish.path, attributes, reactions)));
        }
        FileState::Link(target) => return Ok(Box::new(symlink::Symlink::new(&wish.path, target, reactions))),
        FileState::Absent => return Ok(Box::new(file::Absent::new(&wish.path, reactions))),
        FileState::Present => None,
    };
    Ok(Box::new(file::File::new(&wish.path, content, attributes, reactions)))
}

fn side_file<'a>(context: &NodeContext<'a>, path: &str) -> Result<&'a [u8], String> {
    context.files.get(path).map(Vec::as_slice).ok_or_else(|| format!("{path} was not read"))
}

/// Fills in `{{ node.name }}` first and secrets after, so that a secret is never taken for a template.
fn text_content(context: &NodeContext<'_>, text: &Text) -> Result<(Vec<u8>, bool), String> {
    let (text, secret) = fill(context, text, true)?;
    Ok((text.into_bytes(), secret))
}

fn resolve(context: &NodeContext<'_>, text: &Text) -> Result<(String, bool), String> {
    fill(context, text, false)
}

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
