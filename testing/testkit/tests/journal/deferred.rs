//! Writes that no caller waits for, and the wake-ups of callers that ask whether such a write is durable.

use std::sync::mpsc;

use journal::{JournalOptions, Journaled, Receipt};
use pmem::{Acknowledge, Durability, Level, MediumError, Offset, Persist, Taken, Waited};
use pmem_sim::{Crashable, Fault, Model, SimDisk, SimFile};

const PLACE: Offset = Offset(96);

fn opened(disk: &SimDisk, level: Durability) -> Journaled<SimFile> {
    opened_with(disk, level, true)
}

fn opened_with(disk: &SimDisk, level: Durability, background: bool) -> Journaled<SimFile> {
    let options = |background| JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level,
        segment_bytes: 8192,
        log_bytes_max: 3 * 8192,
        background,
        ..JournalOptions::default()
    };
    drop(Journaled::create(disk.files(), 8192, [1; 16], options(false)).expect("a disk without faults"));
    Journaled::open(disk.files(), options(background), &|_| {}).expect("a disk without faults")
}

/// Publishes a word and does not wait for it.
fn published(journal: &Journaled<SimFile>) -> Receipt {
    let publish = || {
        assert_eq!(journal.publish(&[(Offset(64), 1), (PLACE, 2)], 2), Taken::Yes);
        journal.acknowledge(journal.commit(Level::Strongest))
    };
    let (waited, receipt) = journal.acknowledger().deferred(publish);
    assert_eq!(waited, Ok(Waited::Deferred));
    receipt
}

#[test]
fn asker_is_woken_when_durable() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    for _ in 0..100 {
        let receipt = published(&journal);
        let mut is_durable = notifier.request(receipt).expect("a disk without faults");
        while !is_durable {
            woken.recv().expect("a syncing thread wakes it");
            is_durable = journal.acknowledger().is_durable(receipt).expect("a disk without faults");
        }
    }
}

#[test]
fn asker_is_woken_by_failed_sync() {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = opened(&disk, Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    let receipt = published(&journal);
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    let mut asked = notifier.request(receipt);
    while asked == Ok(false) {
        woken.recv().expect("a syncing thread wakes it");
        asked = journal.acknowledger().is_durable(receipt);
    }
    assert!(matches!(asked, Err(MediumError::Poisoned { .. })), "{asked:?}");
    assert!(notifier.request(receipt).is_err() && journal.acknowledger().wait(receipt).is_err());
}

/// The syncing threads send their last wake-ups when they end.
#[test]
fn durable_ticket_wakes_no_thread() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    let receipt = published(&journal);
    journal.acknowledger().wait(receipt).expect("a disk without faults");
    assert_eq!(notifier.request(receipt), Ok(true));
    drop(journal);
    assert_eq!(woken.try_iter().count(), 0);
}

#[test]
fn kill_safe_writes_are_written_by_caller() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Process);
    let notifier = journal.acknowledger().notifier(|| {});
    for _ in 0..100 {
        let receipt = published(&journal);
        assert_eq!(notifier.request(receipt), Ok(true));
    }
}

#[test]
fn requesting_thread_syncs_if_none_does() {
    let journal = opened_with(&SimDisk::new(0, Model::Disk), Durability::Power, false);
    let notifier = journal.acknowledger().notifier(|| {});
    let receipt = published(&journal);
    assert_eq!(notifier.request(receipt), Ok(true));
    assert_eq!(journal.acknowledger().is_durable(receipt), Ok(true));
}

#[test]
fn durable_writes_stay_acknowledged_after_failure() {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = opened_with(&disk, Durability::Power, false);
    let early = published(&journal);
    let met = journal.commit_published(PLACE, 2);
    journal.acknowledger().wait(early).expect("a disk without faults");
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    assert!(matches!(journal.checkpoint(), Err(MediumError::Poisoned { .. })));
    let acknowledger = journal.acknowledger();
    assert_eq!((journal.acknowledge(met), acknowledger.is_durable(early)), (Ok(Waited::Durable), Ok(true)));
    assert_eq!(acknowledger.wait(early), Ok(()));
    // The log was durable up to its end and contains nothing of this write.
    let (waited, late) = acknowledger.deferred(|| {
        assert_eq!(journal.publish(&[(Offset(64), 1), (PLACE, 4)], 4), Taken::No);
        journal.acknowledge(journal.commit(Level::Strongest))
    });
    assert!(waited.is_err() && acknowledger.is_durable(late).is_err() && acknowledger.wait(late).is_err());
}

#[test]
fn reader_after_failure_does_not_wait() {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = opened_with(&disk, Durability::Power, false);
    let receipt = published(&journal);
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    assert!(journal.acknowledger().wait(receipt).is_err());
    let met = journal.commit_published(PLACE, 2);
    let (waited, nothing) = journal.acknowledger().deferred(|| journal.acknowledge_met(met));
    assert!(matches!(waited, Err(MediumError::Poisoned { .. })), "{waited:?}");
    assert_eq!(nothing, Receipt::default());
}

/// No caller waits at level 'power': when the word becomes durable it is at most one sync interval old.
#[test]
fn buffered_writes_are_synced_unasked() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let publish = || {
        assert_eq!(journal.publish(&[(Offset(64), 1), (PLACE, 2)], 2), Taken::Yes);
        journal.acknowledge(journal.commit(Level::Strongest)).map(drop)
    };
    let (published, written) = journal.acknowledger().at(Durability::Buffered, publish);
    published.and(written).expect("a disk without faults");
    let ticket = journal.commit_published(PLACE, 2);
    while journal.acknowledge_now(ticket) == Ok(Waited::Deferred) {
        std::thread::yield_now();
    }
}

#[test]
fn word_is_durable_at_its_log_position() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let early = published(&journal);
    journal.acknowledger().wait(early).expect("a disk without faults");
    let ticket = journal.commit_published(PLACE, 2);
    let later = Offset(160);
    assert_eq!(journal.publish(&[(Offset(128), 3), (later, 4)], 4), Taken::Yes);
    assert_eq!(journal.acknowledge_now(ticket), Ok(Waited::Durable));
    assert_eq!(journal.acknowledge_now(journal.commit_published(later, 4)), Ok(Waited::Deferred));
    assert!(journal.deferred() >= Some(journal.commit_published(later, 4)), "scans wait for it");
}
