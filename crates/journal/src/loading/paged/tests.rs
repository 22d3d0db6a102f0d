//! Tests of a region that is larger than its memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use parking_lot::Mutex;
use pmem::{Bytes, Level, Persist, Residency, Space, Taken};

use super::*;
use crate::loading::Loaded;
use crate::test_file::{Operation, TestFile};
use crate::{Files, JournalOptions, Journaled};

mod placement;

const PAGE_COUNT: u64 = 256;
const MEMORY_COUNT: u64 = 32;

fn options(background: bool) -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        segment_bytes: 1 << 16,
        log_bytes_max: 1 << 20,
        memory_bytes_max: Some(MEMORY_COUNT * PAGE_BYTES),
        background,
        ..JournalOptions::default()
    }
}

fn files() -> Files<TestFile> {
    Files { base: TestFile::default(), log: TestFile::default() }
}

fn create(files: &Files<TestFile>, background: bool) -> Journaled<TestFile> {
    Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options(background)).unwrap()
}

fn open(files: &Files<TestFile>, options: JournalOptions) -> Journaled<TestFile> {
    Journaled::open(files.handles(), options, &|_| {}).unwrap()
}

fn word_of(page: u64, i: u64) -> Offset {
    Offset(page * PAGE_BYTES + 8 * i)
}

fn set(journal: &Journaled<TestFile>, at: Offset, word: u64) {
    journal.journal.admit_write();
    assert_eq!(journal.publish(&[(at, word)], word), Taken::Yes);
}

fn commit(journal: &Journaled<TestFile>) {
    journal.wait(journal.commit(Level::Strongest)).unwrap();
}

fn get(journal: &Journaled<TestFile>, at: Offset) -> u64 {
    journal.journal.admit();
    journal.load(at, Ordering::Acquire)
}

/// Returns the number of pages in memory, by the kernel's account.
fn resident_count(journal: &Journaled<TestFile>) -> u64 {
    let mut is_resident = [0_u8; PAGE_COUNT as usize];
    // SAFETY: the region is mapped, and the vector has a byte for each of its pages.
    let found = unsafe {
        libc::mincore(journal.base().as_ptr().cast(), (PAGE_COUNT * PAGE_BYTES) as usize, is_resident.as_mut_ptr())
    };
    assert_eq!(found, 0);
    is_resident.iter().map(|page| u64::from(page & 1)).sum()
}

fn figures(journal: &Journaled<TestFile>) -> PageFigures {
    journal.acknowledger().figures().pages.unwrap()
}

/// Evicts until memory is within its limit: other tests of this process are pinned at times.
fn evict_all(journal: &Journaled<TestFile>) {
    let loader = &journal.journal.loader;
    while loader.pager().unwrap().stored_pages(loader.region()).next().is_some()
        || figures(journal).resident_bytes > MEMORY_COUNT * PAGE_BYTES
    {
        journal.checkpoint().unwrap();
        journal.journal.admit();
    }
}

#[test]
fn pages_are_evicted_and_read_again() {
    let files = files();
    let journal = create(&files, false);
    for round in 1..=3 {
        for page in 0..PAGE_COUNT {
            set(&journal, word_of(page, page % 512), round << 32 | page);
        }
        evict_all(&journal);
        let resident = resident_count(&journal);
        assert!(resident <= MEMORY_COUNT, "{resident} pages are in memory");
        for page in 0..PAGE_COUNT {
            assert_eq!(get(&journal, word_of(page, page % 512)), round << 32 | page);
            assert_eq!(get(&journal, word_of(page, (page + 1) % 512)), 0);
        }
    }
    assert!(figures(&journal).evicted_count > 2 * PAGE_COUNT);
    commit(&journal);
    drop(journal);
    let whole = open(&files, JournalOptions { memory_bytes_max: None, ..options(false) });
    (0..PAGE_COUNT).for_each(|page| assert_eq!(get(&whole, word_of(page, page % 512)), 3 << 32 | page));
}

/// A word that is stored and not flushed keeps its value as long as the process lives.
#[test]
fn unflushed_words_survive_eviction() {
    let files = files();
    let journal = create(&files, false);
    for page in 0..PAGE_COUNT {
        journal.store(word_of(page, 7), page + 1, Ordering::Release);
        journal.journal.admit_write();
    }
    evict_all(&journal);
    (0..PAGE_COUNT).for_each(|page| assert_eq!(get(&journal, word_of(page, 7)), page + 1));
}

#[test]
fn pinned_readers_pages_stay() {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    evict_all(&journal);
    let pin = epoch::pin();
    // SAFETY: no thread stores to the page.
    let bytes = unsafe { journal.bytes(word_of(3, 0).span(PAGE_BYTES)) }.unwrap();
    (0..PAGE_COUNT).for_each(|page| assert_eq!(journal.load(word_of(page, 1), Ordering::Acquire), page + 1));
    thread::scope(|scope| {
        scope.spawn(|| (0..4).for_each(|_| assert_eq!(journal.journal.loader.evict(), 0)));
    });
    assert_eq!(bytes[8..16], 4_u64.to_ne_bytes());
    assert_eq!(figures(&journal).resident_bytes, PAGE_COUNT * PAGE_BYTES);
    drop(pin);
    evict_all(&journal);
    assert_eq!(figures(&journal).kept_bytes, 0);
}

#[test]
fn pages_used_without_pin_are_kept() {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    // SAFETY: no thread stores to the page.
    let bytes = unsafe { journal.bytes(word_of(3, 0).span(PAGE_BYTES)) }.unwrap();
    evict_all(&journal);
    assert_eq!((figures(&journal).kept_bytes, &bytes[8..16]), (PAGE_BYTES, &4_u64.to_ne_bytes()[..]));
    set(&journal, word_of(3, 1), 77);
    commit(&journal);
    drop(journal);
    assert_eq!(get(&open(&files, options(false)), word_of(3, 1)), 77);
}

/// Entries of the replayed log are applied once, also if the log needs more pages than there is memory.
#[test]
fn replayed_pages_are_evicted() {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    commit(&journal);
    drop(journal);
    let journal = open(&files, JournalOptions { memory_bytes_max: None, ..options(false) });
    (0..PAGE_COUNT).for_each(|page| assert_eq!(journal.publish(&[(word_of(page, 1), page + 1000)], 1), Taken::Yes));
    commit(&journal);
    let killed = files.copied();
    let journal = open(&killed, options(false));
    assert_eq!(journal.acknowledger().figures().loaded, Loaded::default());
    for page in 0..PAGE_COUNT {
        assert_eq!(journal.peek(word_of(page, 1)), page + 1000);
        assert_eq!(get(&journal, word_of(page, 1)), page + 1000);
        set(&journal, word_of(page, 1), page + 2000);
    }
    evict_all(&journal);
    (0..PAGE_COUNT).for_each(|page| assert_eq!(get(&journal, word_of(page, 1)), page + 2000));

    let to_read = open(&files.copied(), JournalOptions { writable: false, ..options(false) });
    for page in (0..PAGE_COUNT).chain(0..PAGE_COUNT) {
        assert_eq!(get(&to_read, word_of(page, 1)), page + 1000);
    }
    assert!(figures(&to_read).evicted_count > 0);
}

/// Between a peek's read of the base and its look into the replayed log, a checkpoint applies the log, and the page is
/// evicted.
#[test]
fn peek_during_checkpoint_finds_the_entry() {
    let (files, at) = (files(), word_of(3, 1));
    let journal = create(&files, false);
    set(&journal, at, 1);
    commit(&journal);
    drop(journal);
    let journal = open(&files, options(false));
    set(&journal, at, 2);
    commit(&journal);
    let killed = files.copied();
    let journal = open(&killed, options(false));
    let loader = &journal.journal.loader;
    let paging = &loader.pager().unwrap().paging;
    let (mut redo, read_bytes) = (loader.redo.write(), killed.base.read_bytes());
    thread::scope(|scope| {
        let peeked = scope.spawn(|| journal.peek(at));
        while killed.base.read_bytes() == read_bytes {
            thread::yield_now();
        }
        assert_eq!(paging.reach(3, Usage::Read), Reached::Claimed(State::Absent));
        killed.base.write_at(&2_u64.to_ne_bytes(), at.0).unwrap();
        paging.settle_evicted(3..4);
        *redo = Redo::default();
        drop(redo);
        assert_eq!(peeked.join().unwrap(), 2);
    });
}

/// A writer waits for a checkpoint, which is not needed any more once there is more memory.
#[test]
fn writers_go_on_with_more_memory() {
    let files = files();
    let journal = create(&files, true);
    let (go_on, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    files.base.interpose(move |operation| {
        if *operation == Operation::Sync {
            let _ = held.lock().recv();
        }
        Ok(())
    });
    (0..MEMORY_COUNT).for_each(|page| journal.store(word_of(page, 1), 1, Ordering::Release));
    let Pager { paging, evictor, .. } = journal.journal.loader.pager().unwrap();
    let (waiting, is_waiting) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let wake = || {
                evictor.wake();
                let _ = waiting.send(());
            };
            evictor.checkpoints.wait(|| paging.holds_writers(), wake);
        });
        is_waiting.recv().unwrap();
        journal.acknowledger().set_memory_bytes(4 * PAGE_COUNT * PAGE_BYTES);
    });
    assert_eq!(figures(&journal).stored_bytes, MEMORY_COUNT * PAGE_BYTES, "no checkpoint has ended");
    drop(go_on);
}

/// The first checkpoint loads every page that has entries in the log.
#[test]
fn checkpoint_without_thread_evicts_what_it_loads() {
    const COUNT: u64 = 4096;
    let limited = JournalOptions { memory_bytes_max: Some(COUNT / 4 * PAGE_BYTES), ..options(false) };
    let files = files();
    let journal = Journaled::create(files.handles(), COUNT * PAGE_BYTES, [1; 16], limited).unwrap();
    (0..COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    commit(&journal);
    // Other tests of this process are pinned at times.
    let is_within = (0..100).any(|_| {
        let journal = open(&files.copied(), limited);
        journal.checkpoint().unwrap();
        figures(&journal).resident_bytes <= COUNT / 2 * PAGE_BYTES
    });
    assert!(is_within);
}

/// The entries of the replayed log and the pages are within the limit together, until a checkpoint has applied the log.
#[test]
fn replayed_log_counts_as_memory() {
    const MEMORY_BYTES: u64 = PAGE_COUNT * PAGE_BYTES;
    let roomy = JournalOptions { memory_bytes_max: Some(MEMORY_BYTES), ..options(false) };
    let files = files();
    let journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], roomy).unwrap();
    for page in 0..PAGE_COUNT {
        (0..20).for_each(|i| assert_eq!(journal.publish(&[(word_of(page, i), page + i)], 1), Taken::Yes));
    }
    commit(&journal);
    let journal = open(&files.copied(), roomy);
    (0..PAGE_COUNT).for_each(|page| assert_eq!(get(&journal, word_of(page, 1)), page + 1));
    let PageFigures { memory_bytes_max, replayed_bytes, .. } = figures(&journal);
    assert!(replayed_bytes > MEMORY_BYTES / 8, "{replayed_bytes} bytes are to be applied");
    assert_eq!(memory_bytes_max, (MEMORY_BYTES - replayed_bytes) / PAGE_BYTES * PAGE_BYTES);
    journal.checkpoint().unwrap();
    assert_eq!((figures(&journal).replayed_bytes, figures(&journal).memory_bytes_max), (0, MEMORY_BYTES));
    (0..PAGE_COUNT).for_each(|page| assert_eq!(get(&journal, word_of(page, 19)), page + 19));
}

#[test]
fn unreadable_evicted_page_is_lost() {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    evict_all(&journal);
    let lost = (0..PAGE_COUNT)
        .find(|&page| journal.journal.loader.pager.as_ref().unwrap().paging.state(page) == State::Evicted);
    let lost = lost.unwrap();
    files.base.interpose(move |operation| match operation {
        Operation::Read(range) if range.contains(&(lost * PAGE_BYTES)) => {
            Err(std::io::Error::from_raw_os_error(libc::EIO))
        }
        _ => Ok(()),
    });
    let pin = epoch::pin();
    let error = journal.check(word_of(lost, 0).span(8)).unwrap_err();
    assert_eq!(error, MediumError::Unreadable { offset: lost * PAGE_BYTES, errno: libc::EIO });
    drop(pin);
    assert_eq!(journal.load(word_of(lost, 1), Ordering::Acquire), 0);
    assert!(journal.check_lost_ranges().is_err() && journal.health().is_err());
    assert_eq!(journal.publish(&[(word_of(lost, 1), 5)], 1), Taken::No);
}

#[test]
fn grown_region_is_zero_until_stored_to() {
    let files = files();
    let journal = create(&files, false);
    journal.grow(2 * PAGE_COUNT * PAGE_BYTES).unwrap();
    for page in (0..2 * PAGE_COUNT).chain(0..2 * PAGE_COUNT) {
        assert_eq!(get(&journal, word_of(page, 9)), 0);
    }
    (0..2 * PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 9), page));
    evict_all(&journal);
    (0..2 * PAGE_COUNT).for_each(|page| assert_eq!(get(&journal, word_of(page, 9)), page));
}

/// Threads read and write pages of their own and shared ones while pages are evicted and checkpoints run.
#[test]
fn threads_find_their_stores() {
    const THREAD_COUNT: u64 = 4;
    let (files, is_over) = (files(), AtomicBool::new(false));
    let journal = create(&files, true);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREAD_COUNT)
            .map(|thread| {
                let journal = &journal;
                scope.spawn(move || {
                    let mut random = thread + 1;
                    let mut words = [0; PAGE_COUNT as usize];
                    for i in 1..20_000_u64 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let page = random % PAGE_COUNT;
                        let at = word_of(page, 8 * thread);
                        journal.journal.admit_write();
                        let _pin = epoch::pin();
                        assert_eq!(journal.load(at, Ordering::Acquire), words[page as usize]);
                        if random & 1 << 40 == 0 {
                            words[page as usize] = i;
                            journal.store(at, i, Ordering::Release);
                            // Half of the stores are never flushed.
                            if random & 1 << 41 == 0 {
                                journal.flush(at.span(8));
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                journal.checkpoint().unwrap();
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
    assert!(figures(&journal).evicted_count > PAGE_COUNT, "{:?}", figures(&journal));
}
