//! The facts questions as shell text.

/// How much is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What every visit needs; costs about as much as reading the files.
    Core,
    /// Also installed software, nvidia-smi, Docker, disks, limits: for `provision facts`.
    Full,
}

/// The questions: POSIX shell that prints its answers as frames through the function `say KIND KEY`.
///
/// `say` must be defined before it. The kind is always `fact`, the key names the parser. The text writes nothing, does not read
/// standard input, cannot hang, and leaves the root directory as working directory, `LC_ALL=C` and a longer `PATH`. It may run under
/// `set -eu`.
pub fn script(depth: Depth) -> &'static str {
    match depth {
        Depth::Core => include_str!("../../templates/probe/core.sh"),
        Depth::Full => {
            concat!(include_str!("../../templates/probe/core.sh"), include_str!("../../templates/probe/full.sh"))
        }
    }
}
