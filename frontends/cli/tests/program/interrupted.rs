//! Tests commands that are killed: acknowledged items exist afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use testkit::Extent;

use crate::strace::traced;
use crate::support::{Ended, Place, hikv};

/// A `load` from a pipe that the test feeds, and the progress lines that it prints.
struct Loading {
    child: Child,
    input: ChildStdin,
    messages: BufReader<std::process::ChildStderr>,
}

impl Loading {
    fn start(place: &Place) -> Loading {
        let arguments = ["-", "--progress-every", "0"];
        let mut child = hikv("load", &place.store(), &arguments).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let messages = BufReader::new(child.stderr.take().unwrap());
        Loading { child, input, messages }
    }

    fn feed(&mut self, numbers: std::ops::Range<u32>) {
        let lines: String = numbers.map(|number| format!("key-{number}\tvalue-{number}\n")).collect();
        self.input.write_all(lines.as_bytes()).unwrap();
    }

    /// Waits until `count` items are acknowledged.
    fn acknowledged(&mut self, count: u32) {
        let wanted = format!("loaded {count} item{}, ", if count == 1 { "" } else { "s" });
        let line = self.messages.by_ref().lines().map(Result::unwrap).find(|line| line.starts_with(&wanted));
        assert!(line.is_some(), "{count} items were not acknowledged");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn last_words(mut self) -> (Option<i32>, String) {
        let words = self.messages.by_ref().lines().map(Result::unwrap).last();
        (self.child.wait().unwrap().code(), words.unwrap_or_default())
    }
}

fn assert_holds(place: &Place, numbers: std::ops::Range<u32>) {
    let dumped = String::from_utf8(place.run("dump", &["--bare"]).succeeded()).unwrap();
    let lines: std::collections::HashSet<&str> = dumped.lines().collect();
    for number in numbers {
        assert!(lines.contains(&*format!("key-{number}\tvalue-{number}")), "item {number} is lost");
    }
}

#[test]
fn interrupted_load_closes_the_store() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::new();
        let mut loading = Loading::start(&place);
        loading.feed(0..100);
        loading.acknowledged(100);
        loading.signal(signal);
        let (ended, words) = loading.last_words();
        assert_eq!(ended, Some(code));
        assert!(words.starts_with("hikv: interrupted: loaded 100 items"), "{words}");
        place.run("check", &[""; 0]).succeeded();
        assert_holds(&place, 0..100);
    }
}

/// Creates a store with acknowledged items 0 to 699, whose writer was killed.
fn after_a_killed_load() -> Place {
    let place = Place::new();
    let mut loading = Loading::start(&place);
    loading.feed(0..900);
    loading.acknowledged(700);
    loading.signal(Signal::KILL);
    assert_eq!(loading.last_words().0, None, "killed");
    place
}

#[test]
fn killed_load_loses_nothing_that_was_acknowledged() {
    let place = after_a_killed_load();
    place.run("check", &[""; 0]).succeeded();
    assert_holds(&place, 0..700);
    place.run_with_input("load", &["-"], b"later\titem\n").succeeded();
    assert_holds(&place, 0..700);
}

/// The system calls that write to a journaled store.
const CALLS: &str = "pwrite64,fdatasync";

/// Runs a `put` that is killed at call `number` of one of its threads. Returns true if it made so many calls; `None`
/// without strace.
fn killed_at(number: u32, place: &Place) -> Option<bool> {
    let put = hikv("put", &place.store(), &["later", &number.to_string()]);
    let (ended, _) = traced(place, &put, &[&format!("inject={CALLS}:signal=KILL:when={number}")])?;
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() || ended.status.signal() == Some(Signal::KILL.as_raw()), "{words}");
    Some(!ended.status.success())
}

#[test]
fn command_killed_anywhere_leaves_store_intact() {
    let place = after_a_killed_load();
    for number in (1..).step_by(Extent::pick(3, 1)) {
        let Some(was_killed) = killed_at(number, &place) else { return };
        if !was_killed {
            assert_eq!(place.run("get", &["later"]).succeeded(), number.to_string().as_bytes());
            break;
        }
    }
    place.run("check", &["--deep"]).succeeded();
    assert_holds(&place, 0..700);
}

#[test]
fn second_process_learns_lock_holder() {
    let place = Place::new();
    let mut loading = Loading::start(&place);
    loading.feed(0..1);
    loading.acknowledged(1);
    let holder = loading.child.id().to_string();
    for (command, arguments) in [("put", &["k", "v"][..]), ("get", &["k"]), ("stats", &[]), ("dump", &[])] {
        place.run(command, arguments).failed(2, &["store", &holder]);
    }
    let Loading { child, input, .. } = loading;
    drop(input);
    Ended(child.wait_with_output().unwrap()).succeeded();
}
