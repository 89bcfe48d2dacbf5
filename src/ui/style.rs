//! Colours, and whether to use them. Nothing is ever said by colour alone.

use anstyle::{AnsiColor, Style};

/// How human text is to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// Whether escape sequences for colour are written.
    pub color: bool,
    /// Fold only nodes that are equal in every detail, and cut no diff.
    pub full: bool,
}

impl View {
    /// No colour, folded: for files, pipes and tests.
    pub fn plain() -> Self {
        View::default()
    }

    /// What suits standard output: colour on a terminal that has it, unless `NO_COLOR` is set.
    pub fn stdout() -> Self {
        View { color: colored(anstream::AutoStream::choice(&std::io::stdout())), full: false }
    }

    /// The same for standard error.
    pub fn stderr() -> Self {
        View { color: colored(anstream::AutoStream::choice(&std::io::stderr())), full: false }
    }

    /// The same view with every detail shown.
    #[must_use]
    pub fn full(mut self, full: bool) -> Self {
        self.full = full;
        self
    }

    /// Its colours.
    pub fn palette(self) -> Palette {
        if self.color { Palette::colored() } else { Palette::default() }
    }
}

fn colored(choice: anstream::ColorChoice) -> bool {
    choice != anstream::ColorChoice::Never
}

/// The few meanings that have a colour; all plain by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    /// New or well done.
    pub good: Style,
    /// Changed or pending.
    pub change: Style,
    /// Removed or failed.
    pub bad: Style,
    /// Node names that head a block.
    pub head: Style,
    /// What matters less.
    pub dim: Style,
}

impl Palette {
    /// The colours of a terminal.
    pub fn colored() -> Self {
        Palette {
            good: AnsiColor::Green.on_default(),
            change: AnsiColor::Yellow.on_default(),
            bad: AnsiColor::Red.on_default(),
            head: Style::new().bold(),
            dim: Style::new().dimmed(),
        }
    }
}

/// `text` in a style; the text alone when the style is plain.
pub(super) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_style_adds_nothing() {
        assert_eq!(paint(View::plain().palette().bad, "x"), "x");
        assert_eq!(paint(Palette::colored().bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
