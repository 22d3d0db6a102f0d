//! Tests that a checkpoint waits for appends, and appends for a checkpoint.

use std::thread;

use pmem::{Offset, Persist};

use super::NoSpaceReason;
use crate::pace::Pace;
use crate::region::PAGE_BYTES;
use crate::test_file::TestFile;
use crate::{Files, JournalOptions, Journaled};

/// Many times the number of yields in which a thread that does not wait ends.
const YIELD_COUNT: usize = 10_000;

fn create() -> Journaled<TestFile> {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let options =
        JournalOptions { reserve_bytes: 1 << 30, huge_pages: false, background: false, ..JournalOptions::default() };
    Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options).unwrap()
}

/// A writer that has stored to memory and is about to append holds the buffer; its store may already be in a copy.
#[test]
fn appending_writer_is_waited_for() {
    let journal = create();
    thread::scope(|scope| {
        let appending = journal.journal.log.appender().buffer.lock();
        let asked = scope.spawn(|| journal.journal.log.appender().appended_by_now());
        (0..YIELD_COUNT).for_each(|_| thread::yield_now());
        assert!(!asked.is_finished(), "what is appended now is not waited for");
        drop(appending);
    });
}

/// While a checkpoint runs, writers get no further than its pace. Its end lets them go on, also if it fails.
#[test]
fn checkpoint_paces_writers() {
    let journal = create();
    let log = &journal.journal.log;
    let is_ahead = || matches!(log.reserve(8), Err(NoSpaceReason::Pace));
    let space_bytes = log.segments().unused_count() * log.segments().capacity_bytes();
    let pace = Pace::begin(log.segments(), log.appender().appended(), 8);
    assert!(!is_ahead(), "a part of the space is released from the beginning");
    let begun_at = log.appender().appended();
    while !is_ahead() {
        journal.flush(Offset(0).span(64));
    }
    let before_bytes = log.appender().appended() - begun_at;
    assert!(before_bytes > space_bytes / 4 && before_bytes < space_bytes / 2, "{before_bytes} of {space_bytes}");
    thread::scope(|scope| {
        let writer = scope.spawn(|| journal.flush(Offset(0).span(64)));
        (0..YIELD_COUNT).for_each(|_| thread::yield_now());
        assert!(!writer.is_finished(), "a writer is ahead of the checkpoint");
        pace.note(8);
        writer.join().unwrap();
    });
    while !is_ahead() {
        journal.flush(Offset(0).span(64));
    }
    drop(pace);
    assert!(!is_ahead());
}
