//! Tests of reported durability, step by step: the files report their syncs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use pmem::{Acknowledge, Bytes, Durability, Level, Offset, Persist, Space, Span, Taken, Ticket, Waited};

use super::*;
use crate::frame::any_frame;
use crate::layout::FRAMES_START_BYTES;
use crate::region::PAGE_BYTES;
use crate::segment::Header;
use crate::test_file::{Operation, TestFile};
use crate::{Files, JournalOptions, Journaled, Receipt};

const PAGE_COUNT: u64 = 4;
/// Longer than any test: actions that are due after it never happen.
const NEVER: Duration = Duration::from_secs(1 << 20);

fn options(level: Durability) -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level,
        sync_interval: NEVER,
        segment_bytes: 4 * PAGE_BYTES,
        log_bytes_max: 16 * PAGE_BYTES,
        block_bytes: PAGE_BYTES,
        background: false,
        ..JournalOptions::default()
    }
}

fn create(options: JournalOptions) -> (Files<TestFile>, Journaled<TestFile>) {
    let files = Files { base: TestFile::default(), log: TestFile::default() };
    let journal = Journaled::create(files.handles(), PAGE_COUNT * PAGE_BYTES, [1; 16], options).unwrap();
    (files, journal)
}

/// Publishes a word; returns the position up to which the log contains it.
fn publish(journal: &Journaled<TestFile>, word: u64) -> u64 {
    assert_eq!(journal.publish(&[(Offset(0), word)], 0), Taken::Yes);
    journal.commit(Level::Strongest).0
}

/// Collects the results of `look`, which is called whenever the file is about to be synced.
fn at_syncs<T: Send + 'static>(
    file: &TestFile,
    journal: &Journaled<TestFile>,
    look: impl Fn(&Log<TestFile>) -> T + Send + Sync + 'static,
) -> Arc<Mutex<Vec<T>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (journal, kept) = (Arc::downgrade(&journal.journal), Arc::clone(&seen));
    file.interpose(move |operation| {
        if let (Operation::Sync, Some(journal)) = (operation, journal.upgrade()) {
            kept.lock().push(look(&journal.log));
        }
        Ok(())
    });
    seen
}

#[test]
fn nothing_is_called_synced_before_the_sync() {
    let (files, journal) = create(options(Durability::Power));
    let state = |log: &Log<TestFile>| [log.durable.synced(), log.durable.mark()];
    let seen = at_syncs(&files.log, &journal, state);
    let position = publish(&journal, 7);
    journal.journal.log.wait_synced(position).unwrap();
    let [during] = seen.lock()[..] else { panic!("one sync is enough") };
    assert_eq!((during[0] < position, during[1] <= 1), (true, true), "{during:?}");
    assert_eq!(state(&journal.journal.log), [position, 2]);
}

/// A writer has everything written out to get space, and does not wait itself.
#[test]
fn foreign_writeback_is_synced_within_interval() {
    let (_files, journal) = create(JournalOptions { background: true, ..options(Durability::Buffered) });
    let position = publish(&journal, 7);
    journal.journal.log.write_out(Extent::Cached).unwrap();
    assert!(!journal.journal.log.requests.is_any_due());
    journal.journal.log.wait(position, Durability::Buffered).unwrap();
    assert!(journal.journal.log.requests.is_any_due());
}

/// A disk on which syncs begin, and end when the gate is opened.
fn gated(journal: &Journaled<TestFile>, log: &TestFile) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((begun, sees_begun), (open, gate)) = (mpsc::channel(), mpsc::channel());
    let gate = Mutex::new(gate);
    log.interpose(move |operation| {
        if *operation == Operation::Sync {
            let _ = begun.send(());
            let _ = gate.lock().recv();
        }
        Ok(())
    });
    publish(journal, 1);
    journal.journal.log.wait(2, Durability::Buffered).unwrap();
    journal.journal.log.requests.now();
    sees_begun.recv().unwrap();
    (sees_begun, open)
}

/// Returns the receipt of a write at `buffered` while the sync of an older write does not end.
fn owed(sync_interval: Duration) -> (Receipt, u64) {
    let (files, journal) = create(JournalOptions { background: true, sync_interval, ..options(Durability::Buffered) });
    let (_begun, open) = gated(&journal, &files.log);
    let acknowledger = journal.acknowledger();
    let (position, receipt) = acknowledger.deferred(|| {
        let position = publish(&journal, 7);
        let waited = journal.acknowledge(Ticket(position)).unwrap();
        assert_eq!(waited, Waited::Deferred);
        position
    });
    let level = journal.journal.log.demanded(Durability::Buffered);
    assert_eq!(level == Durability::Power, receipt.synced_position() == position);
    assert_eq!(journal.journal.log.demanded(Durability::Process), Durability::Process);
    drop(open);
    acknowledger.wait(receipt).unwrap();
    assert_eq!(acknowledger.is_durable(receipt), Ok(true));
    (receipt, position)
}

/// Otherwise a power loss could take everything written during a sync, of any duration.
#[test]
fn writer_waits_for_overdue_sync() {
    let (receipt, position) = owed(Duration::ZERO);
    assert_eq!(receipt.synced_position(), position);
    let (receipt, _) = owed(NEVER);
    assert_eq!(receipt.synced_position(), 0);
}

/// Sealing needs no sync, and the next segment's header exists before it is needed.
#[test]
fn buffered_writer_changes_segments_during_sync() {
    let options = JournalOptions { log_bytes_max: 64 * PAGE_BYTES, ..options(Durability::Buffered) };
    let (files, journal) = create(JournalOptions { background: true, ..options });
    let sync_count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sync_count);
    let writer = thread::current().id();
    files.log.interpose(move |operation| {
        let is_writers = *operation == Operation::Sync && thread::current().id() == writer;
        counted.fetch_add(is_writers.into(), Ordering::Relaxed);
        Ok(())
    });
    let begun = || journal.journal.log.segments().slots().lock().begun.0;
    let first = begun();
    while begun() < first + 5 {
        journal.journal.log.wait(publish(&journal, 7), Durability::Buffered).unwrap();
        // After the request, `ahead_at` is unset until there is more space or the next segment was begun.
        let has_asked = || journal.journal.log.segments().is_space_asked_for();
        let is_asked = || has_asked() && journal.journal.log.segments().slots().lock().ready.is_none();
        // So that the thread is never late; otherwise the writer would do the work.
        while is_asked() {
            thread::yield_now();
        }
    }
    assert_eq!(sync_count.load(Ordering::Relaxed), 0);
}

#[test]
fn failed_sync_ends_acknowledgements() {
    let (files, journal) = create(options(Durability::Buffered));
    let position = publish(&journal, 7);
    journal.journal.log.wait(position, Durability::Buffered).unwrap();
    assert_eq!(journal.journal.log.acknowledge_now(position), Ok(Waited::Durable));
    files.log.interpose(|operation| match operation {
        Operation::Sync => Err(std::io::Error::from_raw_os_error(libc::EIO)),
        _ => Ok(()),
    });
    assert!(journal.sync().is_err());
    assert!(journal.journal.log.acknowledge_now(position).is_err());
    assert!(journal.journal.log.wait(position, Durability::Buffered).is_err());
}

/// The word's mark was removed when the log was written, so the reader cannot know that a power loss may take the
/// word.
#[test]
fn power_reader_waits_for_weaker_writes() {
    let (_files, journal) = create(options(Durability::Buffered));
    let position = publish(&journal, 7);
    journal.journal.log.wait(position, Durability::Buffered).unwrap();
    let (word, waited) = journal.acknowledger().at(Durability::Power, || journal.load(Offset(0), Ordering::Acquire));
    assert_eq!((word, waited, journal.journal.log.is_synced(position)), (7, Ok(()), true));
}

/// Until the newest header is durable, replay begins at the position in the header before, and may write there.
#[test]
fn log_space_is_freed_after_durable_header() {
    let (files, journal) = create(options(Durability::Power));
    journal.journal.log.wait_synced(publish(&journal, 7)).unwrap();
    let page = Span { start: Offset(PAGE_BYTES), len_bytes: PAGE_BYTES };
    // SAFETY: only one thread uses the region, and not this page.
    let freed_bytes = unsafe { journal.discard(page) };
    assert_eq!(freed_bytes, PAGE_BYTES);
    let position = journal.journal.log.appender.appended();
    let seen = at_syncs(&files.log, &journal, |log| log.segments().replayed_from());
    let punches = Arc::new(Mutex::new(Vec::new()));
    let (journal_of_base, kept) = (Arc::downgrade(&journal.journal), Arc::clone(&punches));
    files.base.interpose(move |operation| {
        if let (Operation::Punch, Some(journal)) = (operation, journal_of_base.upgrade()) {
            kept.lock().push(journal.log.segments().replayed_from());
        }
        Ok(())
    });
    journal.checkpoint().unwrap();
    assert_eq!(
        (punches.lock().len(), seen.lock().iter().max()),
        (0, Some(&1)),
        "the header is of before the checkpoint"
    );
    publish(&journal, 8);
    seen.lock().clear();
    journal.checkpoint().unwrap();
    // The sync of the new header.
    assert_eq!(seen.lock()[..1], [1]);
    let [replayed_from] = punches.lock()[..] else { panic!("{:?}", punches.lock()) };
    assert!(replayed_from >= position);
}

/// Replay requires the frames before the newest header's mark, and begins with the number in this header.
#[test]
fn header_records_durable_end_and_replay_begin() {
    let (files, journal) = create(options(Durability::Power));
    for word in 0..40 {
        journal.journal.log.wait_synced(publish(&journal, word)).unwrap();
        if word % 10 == 9 {
            journal.checkpoint().unwrap();
        }
    }
    let log = files.log.bytes();
    let of_segment = |segment: &[u8]| {
        let header = Header::decode(segment.first_chunk().unwrap()).ok()?;
        // In a segment that is only ready, the slot still has its earlier frames.
        Some((header, any_frame(&segment[FRAMES_START_BYTES as usize..]).filter(|(_, tag)| *tag == header.tag())))
    };
    let segments: Vec<_> = log.chunks(4 * PAGE_BYTES as usize).filter_map(of_segment).collect();
    let newest = segments.iter().map(|(header, _)| header).max_by_key(|header| header.ordinal).unwrap();
    let firsts: Vec<_> = segments.iter().filter_map(|(header, frame)| Some((header, (*frame)?))).collect();
    assert!(firsts.len() > 1);
    for (header, (sequence, _)) in firsts {
        assert!(header.mark <= sequence, "{header:?}, {sequence}");
        assert!(header.ordinal != newest.oldest || sequence == newest.start, "{newest:?}, {sequence}");
    }
}

/// A failure undoes no earlier sync.
#[test]
fn sync_waiter_is_answered_after_failure() {
    let (_files, journal) = create(options(Durability::Power));
    let position = publish(&journal, 7);
    journal.journal.log.wait_synced(position).unwrap();
    journal.journal.health.poison(&std::io::Error::from_raw_os_error(libc::EIO));
    for level in [Durability::Power, Durability::Buffered, Durability::Process] {
        assert_eq!(journal.journal.log.wait(position, level), Ok(()));
        assert!(journal.journal.log.wait(position + 1, level).is_err());
    }
}
