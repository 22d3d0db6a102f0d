//! Tests of files that refuse an operation of opening, before the log is appended to.

use std::io::{self, Read, Seek};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use pmem::{Bytes, Level, Offset, Persist, Taken};

use super::*;
use crate::region::PAGE_BYTES;
use crate::test_file::{Operation, TestFile};
use crate::{Files, JournalOptions, Journaled};

const PAGE_COUNT: u64 = 8;

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        segment_bytes: 2 * PAGE_BYTES,
        log_bytes_max: 4 * PAGE_BYTES,
        block_bytes: PAGE_BYTES,
        background: false,
        ..JournalOptions::default()
    }
}

fn publish(journal: &Journaled<TestFile>, page: u64) {
    let start = Offset(page * PAGE_BYTES);
    assert_eq!(journal.publish(&[(start, page + 1)], page + 1), Taken::Yes);
    journal.wait(journal.commit(Level::Strongest)).unwrap();
}

/// The files that a killed process left: with a free segment in the log, or with a full log.
fn left(is_full: bool) -> Files<TestFile> {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options()).unwrap();
    publish(&journal, 1);
    if is_full {
        assert!(journal.journal.log.seal_early().unwrap(), "the other segment was free");
        publish(&journal, 2);
    }
    files.copied()
}

/// Fails operation `number`, counted from 0, among those that match `one`.
fn fail(file: &TestFile, number: u64, one: fn(&Operation) -> bool) {
    let count = std::sync::atomic::AtomicU64::new(0);
    file.interpose(move |operation| match one(operation) && count.fetch_add(1, Ordering::Relaxed) == number {
        true => Err(io::Error::from_raw_os_error(libc::EIO)),
        false => Ok(()),
    });
}

/// Returns the errors of opening, when each matching operation of one of the files fails in turn.
fn refusals(is_full: bool, which: Which, one: fn(&Operation) -> bool) -> Vec<JournalError> {
    let error_of = |number: u64| {
        assert!(number < 100, "it does not open, whatever works");
        let files = left(is_full);
        fail(if which == Which::Base { &files.base } else { &files.log }, number, one);
        Journaled::open(files.handles(), options(), &|_| {}).err()
    };
    (0..).map_while(error_of).collect()
}

fn is_write(operation: &Operation) -> bool {
    *operation == Operation::Write
}

fn is_sync(operation: &Operation) -> bool {
    *operation == Operation::Sync
}

fn is_read(operation: &Operation) -> bool {
    matches!(operation, Operation::Read(_))
}

/// Nothing was appended to it.
#[test]
fn new_log_is_closed_without_write() {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options()).unwrap();
    for file in [&files.base, &files.log] {
        file.interpose(|operation| panic!("{operation:?}"));
    }
    drop(journal);
}

/// The writer keeps one page of the log, at any length of the log.
#[test]
fn writer_keeps_page_of_log_end() {
    let options = JournalOptions { segment_bytes: 64 * PAGE_BYTES, log_bytes_max: 256 * PAGE_BYTES, ..options() };
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options).unwrap();
    for _ in 0..300 {
        publish(&journal, 1);
    }
    let (at_bytes, kept_bytes) = journal.journal.log.writer().kept();
    assert!(at_bytes > 4 * PAGE_BYTES && kept_bytes as u64 <= PAGE_BYTES);
}

/// The next opening has all the data, and the log gets longer again.
#[test]
fn closed_log_is_as_short_as_new() {
    let options = JournalOptions { log_bytes_max: 40 * PAGE_BYTES, ..options() };
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let mut journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options).unwrap();
    for life in 0..3 {
        for word in 0..200 {
            assert_eq!(journal.publish(&[(Offset(0), 1000 * life + word)], 0), Taken::Yes);
            journal.wait(journal.commit(Level::Strongest)).unwrap();
        }
        assert!(files.log.bytes().len() as u64 > 2 * options.segment_bytes, "the log was longer");
        drop(journal);
        assert_eq!(files.log.bytes().len() as u64, 2 * options.segment_bytes);
        journal = Journaled::open(files.handles(), options, &|_| {}).unwrap();
        assert_eq!(journal.load(Offset(0), Ordering::Acquire), 1000 * life + 199);
    }
}

/// No caller receives the error.
#[test]
fn failure_on_journal_drop_is_logged() {
    for is_failing in [false, true] {
        let files = left(false);
        let journal = Journaled::open(files.handles(), options(), &|_| {}).unwrap();
        publish(&journal, 3);
        if is_failing {
            fail(&files.base, 0, is_sync);
        }
        let (mut lines, closed) = (tempfile::tempfile().unwrap(), journal.acknowledger());
        let log = tracing_subscriber::fmt().with_writer(Mutex::new(lines.try_clone().unwrap())).finish();
        tracing::subscriber::with_default(log, || drop(journal));
        let mut said = String::new();
        lines.rewind().and_then(|()| lines.read_to_string(&mut said)).unwrap();
        assert_eq!(
            said.contains("ERROR") && said.contains("the end of the log could not be made durable"),
            is_failing,
            "{said}"
        );
        assert_eq!(closed.closed().is_err(), is_failing);
    }
}

#[test]
fn open_error_names_the_failing_file() {
    for is_full in [false, true] {
        for (which, name) in [(Which::Base, "base"), (Which::Log, "log")] {
            for (one, least_count) in [(is_read as fn(&Operation) -> bool, 1), (is_write, 1), (is_sync, 1)] {
                let errors = refusals(is_full, which, one);
                // A full log has to be applied before it can be appended to.
                let least_count = least_count + usize::from(is_full && which == Which::Base);
                assert!(errors.len() >= least_count, "{errors:?}");
                for error in errors {
                    let text = error.to_string();
                    assert!(error.which() == which && text.contains(&format!("the {name}: ")), "{which}: {text}");
                    assert!(text.contains("error 5") || text.contains("error number 5"), "{text}");
                }
            }
        }
    }
}
