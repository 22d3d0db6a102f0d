//! Tests of the pages that stay in memory, and of those that are not read.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Longer than any step takes: a test that would hang fails.
const END_MAX: Duration = Duration::from_secs(60);

/// Reads index pages between many others; returns how many of them were read from the base, after the first time.
fn index_read_count(is_preferred: bool, index_count: u64) -> u64 {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    journal.prefer(Offset(0).span(index_count * PAGE_BYTES), is_preferred);
    evict_all(&journal);
    let (mut read_count, mut others) = (0, (index_count..PAGE_COUNT).cycle());
    for round in 0..10 {
        let before = figures(&journal).loaded_count;
        (0..index_count).for_each(|page| assert_eq!(get(&journal, word_of(page, 1)), page + 1));
        read_count += if round > 0 { figures(&journal).loaded_count - before } else { 0 };
        others.by_ref().take(2 * MEMORY_COUNT as usize).for_each(|page| {
            assert_eq!(get(&journal, word_of(page, 1)), page + 1);
        });
        evict_all(&journal);
    }
    read_count
}

#[test]
fn index_pages_outlive_other_pages() {
    assert_eq!(index_read_count(true, MEMORY_COUNT / 4), 0);
    assert_ne!(index_read_count(false, MEMORY_COUNT / 4), 0, "without the preference they are evicted");
    assert_ne!(index_read_count(true, PAGE_COUNT - MEMORY_COUNT), 0, "a large index leaves memory to items");
}

/// Reads all pages, as a walk or not; returns how many pages that were read before are read again afterwards.
fn read_again_count(is_walk: bool) -> u64 {
    const HOT_COUNT: u64 = MEMORY_COUNT / 2;
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    evict_all(&journal);
    let read = |pages: Range<u64>| {
        let before = figures(&journal).loaded_count;
        pages.for_each(|page| assert_eq!(get(&journal, word_of(page, 1)), page + 1));
        figures(&journal).loaded_count - before
    };
    read(0..HOT_COUNT);
    read(0..HOT_COUNT);
    if is_walk {
        journal.once(|| read(HOT_COUNT..PAGE_COUNT))
    } else {
        read(HOT_COUNT..PAGE_COUNT)
    };
    read(0..HOT_COUNT)
}

#[test]
fn walk_evicts_its_own_pages() {
    assert_eq!(read_again_count(true), 0);
    assert_ne!(read_again_count(false), 0);
}

#[test]
fn overwritten_pages_are_not_read() {
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    evict_all(&journal);
    let (read_bytes, read_count) = (files.base.read_bytes(), figures(&journal).loaded_count);
    // SAFETY: only this thread uses the region.
    unsafe { journal.overwrite(Offset(100).span(3 * PAGE_BYTES)) };
    (1..3).for_each(|page| set(&journal, word_of(page, 7), page + 7000));
    assert_eq!((files.base.read_bytes(), figures(&journal).loaded_count), (read_bytes, read_count));
    let check = |journal: &Journaled<TestFile>| {
        for page in [0, 3, 4] {
            assert_eq!(get(journal, word_of(page, 1)), page + 1);
        }
        (1..3).for_each(|page| assert_eq!(get(journal, word_of(page, 7)), page + 7000));
    };
    check(&journal);
    evict_all(&journal);
    check(&journal);
    drop(journal);
    check(&open(&files, options(false)));
}

/// The disk gets all requests at the same time: each read waits for the others.
#[test]
fn requested_pages_are_read_together() {
    const COUNT: u64 = 8;
    let files = files();
    let journal = create(&files, false);
    (0..PAGE_COUNT).for_each(|page| set(&journal, word_of(page, 1), page + 1));
    commit(&journal);
    drop(journal);
    let journal = open(&files, options(true));
    let (together, begun_count) = (Barrier::new(COUNT as usize), AtomicU64::new(0));
    files.base.interpose(move |operation| {
        if let (Operation::Read(_), Some("hikv-read")) = (operation, thread::current().name())
            && begun_count.fetch_add(1, Ordering::Relaxed) < COUNT
        {
            together.wait();
        }
        Ok(())
    });
    let before = figures(&journal).loaded_count;
    journal.request(word_of(3, 100).span(1));
    journal.request(word_of(10, 100).span((COUNT - 2) * PAGE_BYTES));
    let start = Instant::now();
    while figures(&journal).loaded_count < before + COUNT {
        assert!(start.elapsed() < END_MAX, "{:?}", figures(&journal));
        thread::yield_now();
    }
    let read_bytes = files.base.read_bytes();
    for page in [3].into_iter().chain(10..9 + COUNT) {
        assert_eq!(get(&journal, word_of(page, 1)), page + 1);
    }
    assert_eq!(files.base.read_bytes(), read_bytes);
    journal.request(word_of(PAGE_COUNT - 1, 0).span(1 << 40));
}
