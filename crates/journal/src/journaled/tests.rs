//! Tests that only one thread at a time grows the region.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::MediumError;

use crate::region::PAGE_BYTES;
use crate::test_file::{Operation, TestFile};
use crate::{Files, JournalOptions, Journaled};

#[test]
fn growing_writer_excludes_others() {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let options =
        JournalOptions { reserve_bytes: 1 << 30, huge_pages: false, background: false, ..JournalOptions::default() };
    let journal = Arc::new(Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options).unwrap());
    let (inner, sync_count) = (Arc::downgrade(&journal), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sync_count);
    files.base.interpose(move |operation| {
        if *operation == Operation::Sync {
            assert!(inner.upgrade().expect("it is open").growing.is_locked(), "another may grow it at the same time");
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    journal.grow_to(9 * PAGE_BYTES).unwrap();
    files.base.interpose(|_| Ok(()));
    assert_eq!(sync_count.load(Ordering::Relaxed), 1, "the base is as long before the log says so");
}

/// Then a crash after it leaves no log for a base that does not exist yet.
#[test]
fn unfinished_log_is_removed_before_base() {
    let (files, sync_count) =
        (Files { base: TestFile::default(), log: TestFile::default() }, Arc::new(AtomicUsize::new(0)));
    let options =
        JournalOptions { reserve_bytes: 1 << 30, huge_pages: false, background: false, ..JournalOptions::default() };
    let create = || drop(Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options).unwrap());
    create();
    let (counted, log) = (Arc::clone(&sync_count), files.log.clone());
    files.log.interpose(move |operation| {
        counted.fetch_add(usize::from(*operation == Operation::Sync), Ordering::Relaxed);
        Ok(())
    });
    let (counted, seen) = (Arc::clone(&sync_count), Arc::new(AtomicUsize::new(0)));
    let seen_there = Arc::clone(&seen);
    files.base.interpose(move |operation| {
        if *operation == Operation::Sync && seen_there.fetch_add(1, Ordering::Relaxed) == 0 {
            assert_eq!((log.bytes().len(), counted.load(Ordering::Relaxed)), (0, 1), "bytes of the log, and its syncs");
        }
        Ok(())
    });
    create();
    assert!(seen.load(Ordering::Relaxed) > 0);
}

/// The child has neither the region nor a right to its parent's files.
#[test]
fn forked_child_grows_nothing() {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let options =
        JournalOptions { reserve_bytes: 1 << 30, huge_pages: false, background: false, ..JournalOptions::default() };
    let journal = Journaled::create(files.handles(), PAGE_BYTES, [1; 16], options).unwrap();
    // SAFETY: the child makes one call, which takes no lock, and leaves without unwinding into the test harness.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let grown = journal.grow_to(9 * PAGE_BYTES);
        let is_refused = matches!(grown, Err(MediumError::Os { errno: libc::ECHILD }));
        // SAFETY: the child exits immediately; no destructor of the parent runs in it.
        unsafe { libc::_exit(i32::from(!is_refused)) };
    }
    let mut status = 0;
    // SAFETY: the child belongs to this process, and `status` lives through the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "it was not refused");
    journal.grow_to(9 * PAGE_BYTES).unwrap();
}
