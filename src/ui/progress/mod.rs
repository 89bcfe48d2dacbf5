//! A run while it goes on, on standard error: a bar and the longest running nodes on a terminal, plain lines elsewhere.
//!
//! It is fed with events and knows nothing of who makes them. [`Progress`] takes them one by one; [`follow`] takes
//! them from a channel until the last sender is gone.

mod board;
mod lines;

use std::io::{self, IsTerminal, Write};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::board::Board;
use super::report::Failures;
use crate::event::{Event, Report};

/// How often a terminal is drawn anew at most.
const DRAW: Duration = Duration::from_millis(100);
/// How often running times move on when nothing happens.
const TICK: Duration = Duration::from_millis(500);
/// After how long a silence plain output says what is still running.
const SILENCE: Duration = Duration::from_secs(60);

/// `--progress`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// A bar on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// Plain lines.
    Plain,
    /// Nothing.
    None,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Mode::Auto),
            "plain" => Ok(Mode::Plain),
            "none" => Ok(Mode::None),
            _ => Err("expected auto, plain or none".to_owned()),
        }
    }
}

/// Shows events as they come, and folds them into what the end of the run is told from.
pub struct Progress {
    /// The report so far.
    pub report: Report,
    /// The failures so far.
    pub failures: Failures,
    board: Board,
    began: Instant,
    output: Output,
    verbose: bool,
}

enum Output {
    Bars(Box<Bars>),
    Lines { out: Box<dyn Write + Send>, last: Duration },
    Nothing,
}

impl Progress {
    /// Progress on standard error, as the mode and the terminal say.
    pub fn new(mode: Mode) -> Self {
        let dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let output = match mode {
            Mode::None => Output::Nothing,
            Mode::Auto if io::stderr().is_terminal() && !dumb() => Output::Bars(Box::new(Bars::new())),
            Mode::Auto | Mode::Plain => lines(Box::new(io::stderr())),
        };
        Self::with(output)
    }

    /// Says also how each connection came about.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// Plain lines into any writer.
    pub fn plain(out: Box<dyn Write + Send>) -> Self {
        Self::with(lines(out))
    }

    fn with(output: Output) -> Self {
        Progress {
            report: Report::default(),
            failures: Failures::default(),
            board: Board::default(),
            began: Instant::now(),
            output,
            verbose: false,
        }
    }

    /// Takes an event into account and shows it.
    pub fn take(&mut self, event: &Event) {
        self.take_at(event, self.began.elapsed());
    }

    /// Lets running times move on; to be called now and then when no event comes.
    pub fn tick(&mut self) {
        self.tick_at(self.began.elapsed());
    }

    /// Takes the bars off the terminal.
    pub fn finish(&mut self) {
        if let Output::Bars(bars) = &mut self.output {
            bars.clear();
        }
    }

    fn take_at(&mut self, event: &Event, now: Duration) {
        // Who was left out is said while nodes are asked; a run that begins afterwards only records it again.
        let repeated = matches!(event, Event::NodeLeftOut { .. }) && !self.report.run.is_empty();
        self.report.fold(event);
        self.failures.fold(event);
        self.board.take(event, now);
        if let (true, Event::Connected { node, how }) = (self.verbose, event) {
            self.line(&format!("{}: connected: {}", super::safe(node), super::safe(how)));
        }
        match &mut self.output {
            Output::Nothing => {}
            Output::Lines { out, last } => {
                if let Some(line) = lines::plain(event).filter(|_| !repeated) {
                    // Nobody reads it any more: the run goes on all the same.
                    let _ = writeln!(out, "{line}");
                    *last = now;
                }
            }
            Output::Bars(bars) => {
                if let Some(line) = lines::important(event).filter(|_| !repeated) {
                    bars.line(&line);
                }
                if now >= bars.drawn + DRAW {
                    bars.draw(&self.board, now);
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        match &mut self.output {
            Output::Bars(bars) => bars.line(line),
            Output::Lines { out, .. } => {
                let _ = writeln!(out, "{line}");
            }
            Output::Nothing => {
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }

    fn tick_at(&mut self, now: Duration) {
        match &mut self.output {
            Output::Nothing => {}
            Output::Lines { out, last } => {
                if now >= *last + SILENCE {
                    for line in self.board.running(now) {
                        let _ = writeln!(out, "still running: {line}");
                    }
                    *last = now;
                }
            }
            Output::Bars(bars) => bars.draw(&self.board, now),
        }
    }
}

fn lines(out: Box<dyn Write + Send>) -> Output {
    Output::Lines { out, last: Duration::ZERO }
}

/// Shows all events of a channel until its last sender is gone, and gives what they add up to.
///
/// It blocks, so it belongs into a thread of its own.
pub fn follow(mut progress: Progress, events: &Receiver<Event>) -> (Report, Failures) {
    loop {
        match events.recv_timeout(TICK) {
            Ok(event) => progress.take(&event),
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    progress.finish();
    (progress.report, progress.failures)
}

/// The bars of a terminal: the overall one and one line for each node shown.
struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    nodes: Vec<ProgressBar>,
    drawn: Duration,
}

impl Bars {
    fn new() -> Self {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let overall = multi.add(ProgressBar::new(0));
        overall.set_style(style("[{bar:24}] {wide_msg}").progress_chars("=> "));
        Bars { multi, overall, nodes: Vec::new(), drawn: Duration::ZERO }
    }

    fn line(&self, line: &str) {
        let _ = self.multi.println(line);
    }

    fn draw(&mut self, board: &Board, now: Duration) {
        self.drawn = now;
        let (finished, all) = board.counts();
        self.overall.set_length(all as u64);
        self.overall.set_position(finished as u64);
        self.overall.set_message(board.summary());
        let lines = board.running(now);
        while self.nodes.len() > lines.len() {
            if let Some(bar) = self.nodes.pop() {
                bar.finish_and_clear();
                self.multi.remove(&bar);
            }
        }
        while self.nodes.len() < lines.len() {
            let bar = self.multi.add(ProgressBar::new_spinner());
            // Cut to the terminal's width, so that no line wraps.
            bar.set_style(style("  {wide_msg}"));
            self.nodes.push(bar);
        }
        for (bar, line) in self.nodes.iter().zip(lines) {
            bar.set_message(line);
        }
    }

    fn clear(&mut self) {
        for bar in self.nodes.drain(..) {
            bar.finish_and_clear();
        }
        self.overall.finish_and_clear();
        let _ = self.multi.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests;
