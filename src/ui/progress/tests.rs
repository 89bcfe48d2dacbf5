use std::sync::{Arc, Mutex, mpsc};

use super::*;
use crate::ui::samples::events;

/// A writer that can be read afterwards.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn plain_lines_of_a_whole_run() {
    let kept = Kept::default();
    let (sender, receiver) = mpsc::channel();
    let progress = Progress::plain(Box::new(kept.clone()));
    let thread = std::thread::spawn(move || follow(progress, &receiver));
    for event in events() {
        sender.send(event).unwrap();
    }
    drop(sender);
    let (report, failures) = thread.join().unwrap();
    insta::assert_snapshot!(kept.text());
    assert_eq!(report.exit, Some(1));
    assert_eq!(failures.0.keys().collect::<Vec<_>>(), ["n3"]);
}

#[test]
fn silence_names_what_is_running_once_a_minute() {
    let kept = Kept::default();
    let mut progress = Progress::plain(Box::new(kept.clone()));
    let second = Duration::from_secs;
    progress.take_at(&Event::OpStarted { node: "n1".into(), op: "packages htop".into() }, second(1));
    progress.tick_at(second(59));
    assert_eq!(kept.text(), "");
    progress.tick_at(second(60));
    progress.tick_at(second(61));
    assert_eq!(kept.text(), "still running: n1 (59 s): packages htop\n");
    progress.tick_at(second(120));
    assert_eq!(kept.text().lines().count(), 2);
}

#[test]
fn at_most_eight_lines_and_the_longest_first() {
    let mut board = Board::default();
    for number in 0..10_000_u64 {
        let started = Event::OpStarted { node: format!("n{number}"), op: "package htop".into() };
        board.take(&started, Duration::from_millis(10_000 - number));
    }
    let lines = board.running(Duration::from_secs(20));
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[0], "n9999 (19 s): package htop");
    assert_eq!(lines[7], "and 9993 more nodes");
    assert!(board.running(Duration::from_millis(10_000)).len() == 8);
    assert_eq!(board.running(Duration::ZERO), Vec::<String>::new(), "what has just begun is not shown");
}

#[test]
fn the_bar_counts_the_asking_then_the_changing() {
    let mut board = Board::default();
    let mut seen = Vec::new();
    for event in events() {
        board.take(&event, Duration::ZERO);
        let (finished, all) = board.counts();
        assert!(finished <= all);
        if seen.last() != Some(&board.summary()) {
            seen.push(board.summary());
        }
    }
    insta::assert_snapshot!(seen.join("\n"));
    assert!(board.running(Duration::from_secs(9)).is_empty());
}

#[test]
fn nothing_of_a_node_is_obeyed() {
    let kept = Kept::default();
    let mut progress = Progress::plain(Box::new(kept.clone()));
    let evil = "\u{1b}]0;x\u{7}\n\u{9b}2J".to_owned();
    progress.take(&Event::LinkLost { node: "n1".into(), why: evil.clone() });
    progress.take(&Event::OpFailed {
        node: "n1".into(),
        op: evil.clone(),
        during: evil.clone(),
        status: -1,
        tail: vec![],
    });
    progress.take(&Event::NodeFailed { node: evil.clone(), at: evil.clone(), what: evil.clone(), fix: vec![evil] });
    let text = kept.text();
    assert_eq!(text.lines().count(), 3);
    assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
}

#[test]
fn a_writer_that_fails_does_not_stop_the_run() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut progress = Progress::plain(Box::new(Gone));
    for event in events() {
        progress.take(&event);
    }
    assert_eq!(progress.report.nodes.len(), 4);
}

#[test]
fn modes_are_read_as_they_are_typed() {
    assert_eq!("auto".parse(), Ok(Mode::Auto));
    assert_eq!("plain".parse(), Ok(Mode::Plain));
    assert_eq!("none".parse(), Ok(Mode::None));
    assert!("Plain".parse::<Mode>().is_err());
}
