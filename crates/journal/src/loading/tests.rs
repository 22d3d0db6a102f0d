//! Tests of a journal that is closed while its base is read.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use pmem::{Bytes, Level, Persist, Taken};

use super::*;
use crate::layout::FRAMES_START_BYTES;
use crate::test_file::{Operation, TestFile};
use crate::{Files, JournalOptions, Journaled};

/// Several read calls of the thread.
const REGION_BYTES: u64 = 4 * RUN_BYTES;
const PAGE_COUNT: u64 = REGION_BYTES / PAGE_BYTES;
/// One page in this many was changed since the base was written.
const CHANGED_EVERY: u64 = 100;
/// Longer than any step takes: a test that would hang fails.
const END_MAX: Duration = Duration::from_secs(60);

fn options(background: bool) -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        segment_bytes: 1 << 16,
        log_bytes_max: 1 << 20,
        block_bytes: PAGE_BYTES,
        background,
        ..JournalOptions::default()
    }
}

fn open(files: &Files<TestFile>, background: bool) -> Journaled<TestFile> {
    Journaled::open(files.handles(), options(background), &|_| {}).expect("files without faults")
}

/// Sets the first word of a page.
fn set(journal: &Journaled<TestFile>, page: u64, word: u64) {
    let start = Offset(page * PAGE_BYTES);
    assert_eq!(journal.publish(&[(start, word)], word), Taken::Yes);
}

fn commit(journal: &Journaled<TestFile>) {
    journal.wait(journal.commit(Level::Strongest)).expect("files without faults");
}

fn is_changed(page: u64) -> bool {
    page.is_multiple_of(CHANGED_EVERY)
}

/// Returns a page's first word in the files that a killed process left.
fn word(page: u64) -> u64 {
    if is_changed(page) { PAGE_COUNT + page } else { page + 1 }
}

/// Returns the files that a killed process left: for most pages the base has the first word, for some only the log.
fn left() -> Files<TestFile> {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), REGION_BYTES, [1; 16], options(false)).unwrap();
    (0..PAGE_COUNT).for_each(|page| set(&journal, page, page + 1));
    drop(journal);
    let journal = open(&files, false);
    (0..PAGE_COUNT).filter(|&page| is_changed(page)).for_each(|page| set(&journal, page, word(page)));
    commit(&journal);
    files.copied()
}

/// Asserts that each page of the base begins with the expected word.
fn assert_base(base: &TestFile, expected: impl Fn(u64) -> u64) {
    for (page, bytes) in (0..).zip(base.bytes().chunks(PAGE_BYTES as usize)) {
        assert_eq!(bytes[..8], expected(page).to_ne_bytes(), "page {page}");
    }
}

/// Makes the thread that reads the base wait before each read. The receiver gets the range of each read; once the
/// sender is dropped, no read waits any more.
fn hold_loader(base: &TestFile) -> (mpsc::Receiver<Range<u64>>, mpsc::Sender<()>) {
    let (reads, reading) = mpsc::channel();
    let (go_on, reported) = mpsc::channel::<()>();
    let (reads, reported) = (Mutex::new(reads), Mutex::new(reported));
    base.interpose(move |operation| {
        if let (Operation::Read(range), Some("hikv-load")) = (operation, thread::current().name()) {
            let _ = reads.lock().send(range.clone());
            let _ = reported.lock().recv();
        }
        Ok(())
    });
    (reading, go_on)
}

/// Drops the journal on another thread; returns when it is closing. The receiver gets a message when closing is
/// over.
fn closing(journal: Journaled<TestFile>) -> mpsc::Receiver<()> {
    let (over, is_over) = mpsc::channel();
    let shared = Arc::clone(&journal.journal);
    thread::spawn(move || {
        drop(journal);
        over.send(())
    });
    while !shared.health.is_closing() {
        thread::yield_now();
    }
    is_over
}

#[test]
fn closing_loader_finishes_current_piece() {
    let files = left();
    let (reading, go_on) = hold_loader(&files.base);
    let journal = open(&files, true);
    journal.acknowledger().load_rest();
    assert_eq!(reading.recv_timeout(END_MAX), Ok(0..RUN_BYTES));
    let last = PAGE_COUNT - 1;
    assert_eq!(journal.load(Offset(last * PAGE_BYTES), Ordering::Acquire), word(last), "it is served meanwhile");
    set(&journal, last, 7);
    commit(&journal);

    let before_bytes = files.base.read_bytes();
    let is_over = closing(journal);
    drop(go_on);
    is_over.recv_timeout(END_MAX).expect("closing ends");
    assert_eq!(reading.try_recv().ok(), None, "the thread went on reading");
    // Behind that piece, the blocks with entries in the log are loaded for the last checkpoint.
    let changed_count = PAGE_COUNT.div_ceil(CHANGED_EVERY);
    let read_bytes = files.base.read_bytes() - before_bytes;
    assert!(read_bytes <= RUN_BYTES + changed_count * PAGE_BYTES, "{read_bytes} bytes were read");

    assert_base(&files.base, |page| if page == last { 7 } else { word(page) });
    let replayed_bytes = open(&files, false).acknowledger().figures().opening.replayed_bytes;
    assert_eq!(replayed_bytes, FRAMES_START_BYTES, "there is nothing to be replayed");
}

#[test]
fn loader_closed_before_use_ends() {
    let files = left();
    let journal = open(&files, true);
    closing(journal).recv_timeout(END_MAX).expect("closing ends");
    assert_base(&files.base, word);
}

#[test]
fn closed_file_reader_changes_nothing() {
    let files = left();
    let before = [files.base.bytes(), files.log.bytes()];
    let (reading, go_on) = hold_loader(&files.base);
    let options = JournalOptions { writable: false, ..options(true) };
    let journal = Journaled::open(files.handles(), options, &|_| {}).expect("files without faults");
    journal.acknowledger().load_rest();
    assert_eq!(reading.recv_timeout(END_MAX), Ok(0..RUN_BYTES));
    assert_eq!(journal.load(Offset(REGION_BYTES - PAGE_BYTES), Ordering::Acquire), word(PAGE_COUNT - 1));
    let is_over = closing(journal);
    drop(go_on);
    is_over.recv_timeout(END_MAX).expect("closing ends");
    assert_eq!(files.base.read_bytes(), RUN_BYTES + PAGE_BYTES);
    assert!([files.base.bytes(), files.log.bytes()] == before);
}
