//! Reads the framed output of a probe; total on any bytes.

use std::collections::BTreeMap;

use crate::ops::Seen;

/// What a probe printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    /// Answers of kind `fact`, by name.
    pub facts: BTreeMap<String, String>,
    /// All other answers.
    pub seen: Seen,
    /// Whether the closing frame was there; always true in an `Ok`.
    pub complete: bool,
}

/// Why the output of a probe is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not one frame: something else answered.
    #[error("the node did not answer with our frames; it wrote: {0}")]
    NoFrames(String),
    /// The closing frame is missing: the script died or the output was cut.
    #[error("the node's answer stops after `{0}`")]
    Incomplete(String),
}

/// Splits the output of a probe into its answers; what comes before the first frame or after the last is ignored.
///
/// # Errors
/// When there is no frame with this nonce, or the closing one is missing.
pub fn parse_frames(output: &[u8], nonce: &str) -> Result<Frames, FrameError> {
    let text = String::from_utf8_lossy(output);
    let marker = format!("@@{nonce} ");
    let mut frames = Frames::default();
    let mut open: Option<(String, String, String)> = None;
    let mut last = String::new();
    for line in text.split('\n') {
        if let Some(head) = line.strip_prefix(&marker) {
            if let Some(frame) = open.take() {
                frames.close(frame);
            }
            let (kind, key) = head.split_once(' ').unwrap_or((head, ""));
            if kind == "done" {
                frames.complete = true;
                return Ok(frames);
            }
            last = head.chars().take(200).collect();
            open = Some((kind.to_owned(), key.to_owned(), String::new()));
        } else if let Some((_, _, body)) = &mut open {
            body.push_str(line);
            body.push('\n');
        }
    }
    if open.is_none() {
        let shown: String = text.trim().chars().take(200).flat_map(char::escape_debug).collect();
        return Err(FrameError::NoFrames(shown));
    }
    Err(FrameError::Incomplete(last))
}

impl Frames {
    /// Files an answer; trailing newlines go, as in `$(...)`, so that phase script and planner see the same.
    fn close(&mut self, (kind, key, mut body): (String, String, String)) {
        body.truncate(body.trim_end_matches('\n').len());
        if kind == "fact" {
            self.facts.insert(key, body);
        } else {
            self.seen.insert(&kind, &key, body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_split_and_forged_ones_are_text() {
        let output =
            b"motd noise\n\n@@N1 fact os\nID=x\n\n@@N1 path /a b\nfile 644\n@@N2 path /c\nx\xff\n\n@@N1 done ok\nrest";
        let frames = parse_frames(output, "N1").unwrap();
        assert_eq!(frames.facts["os"], "ID=x");
        assert_eq!(frames.seen.answer("path", "/a b").unwrap(), "file 644\n@@N2 path /c\nx\u{fffd}");
        assert_eq!(frames.seen.answer("path", "/c"), None);
    }

    #[test]
    fn without_an_end_nothing_is_believed() {
        assert_eq!(parse_frames(b"@@N fact os\nID=x\n", "N"), Err(FrameError::Incomplete("fact os".to_owned())));
        assert!(matches!(parse_frames(b"sudo: sorry\n", "N"), Err(FrameError::NoFrames(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_frames(&bytes, "N");
        }
    }
}
