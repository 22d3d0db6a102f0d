//! Tests that only one thread at a time makes space: at every write to the log and every sync of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::region::PAGE_BYTES;
use crate::test_file::TestFile;
use crate::{Files, JournalOptions, Journaled};

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        segment_bytes: 64 * PAGE_BYTES,
        log_bytes_max: 256 * PAGE_BYTES,
        block_bytes: PAGE_BYTES,
        background: false,
        ..JournalOptions::default()
    }
}

/// Returns the number of operations on the log that `act` makes; at each, `act` must hold the lock.
fn alone(act: impl FnOnce(&Journaled<TestFile>)) -> usize {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options()).unwrap();
    let (count, inner) = (Arc::new(AtomicUsize::new(0)), Arc::downgrade(&journal.journal));
    let counted = Arc::clone(&count);
    files.log.interpose(move |operation| {
        let journal = inner.upgrade().expect("it is open");
        assert!(journal.log.segments().ahead.is_locked(), "another may make room at the same time: {operation:?}");
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    act(&journal);
    files.log.interpose(|_| Ok(()));
    count.load(Ordering::Relaxed)
}

#[test]
fn spare_space_grows_by_one() {
    assert!(alone(|journal| assert!(journal.journal.log.segments().widen_to(options().segment_bytes).unwrap())) > 0);
}

#[test]
fn the_next_segment_is_prepared_by_one() {
    assert!(alone(|journal| journal.journal.log.segments().prepare(None, journal.journal.log.durable()).unwrap()) > 1);
}
