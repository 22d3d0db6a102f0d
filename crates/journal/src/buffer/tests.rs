//! Tests that a checkpoint waits for appends.

use std::thread;

use crate::region::PAGE_BYTES;
use crate::test_file::TestFile;
use crate::{Files, JournalOptions, Journaled};

/// Many times the number of yields in which a thread that does not wait ends.
const YIELD_COUNT: usize = 10_000;

/// A writer that has stored to memory and is about to append holds the buffer; its store may already be in a copy.
#[test]
fn appending_writer_is_waited_for() {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let options =
        JournalOptions { reserve_bytes: 1 << 30, huge_pages: false, background: false, ..JournalOptions::default() };
    let journal = Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options).unwrap();
    thread::scope(|scope| {
        let appending = journal.journal.log.appender().buffer.lock();
        let asked = scope.spawn(|| journal.journal.log.appender().appended_by_now());
        (0..YIELD_COUNT).for_each(|_| thread::yield_now());
        assert!(!asked.is_finished(), "what is appended now is not waited for");
        drop(appending);
    });
}
