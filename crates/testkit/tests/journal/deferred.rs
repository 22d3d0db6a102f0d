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
fn whoever_asks_is_woken_when_all_is_durable() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    for _ in 0..100 {
        let receipt = published(&journal);
        let mut is_durable = notifier.ask(receipt).expect("a disk without faults");
        while !is_durable {
            woken.recv().expect("a syncing thread wakes it");
            is_durable = journal.acknowledger().is_durable(receipt).expect("a disk without faults");
        }
    }
}

#[test]
fn whoever_asks_is_woken_when_the_sync_fails_and_told_so_ever_after() {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = opened(&disk, Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    let receipt = published(&journal);
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    let mut asked = notifier.ask(receipt);
    while asked == Ok(false) {
        woken.recv().expect("a syncing thread wakes it");
        asked = journal.acknowledger().is_durable(receipt);
    }
    assert!(matches!(asked, Err(MediumError::Poisoned { .. })), "{asked:?}");
    assert!(notifier.ask(receipt).is_err() && journal.acknowledger().wait(receipt).is_err());
}

/// The syncing threads send their last wake-ups when they end.
#[test]
fn nobody_is_woken_for_what_was_durable_when_it_was_asked_for() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Power);
    let (sender, woken) = mpsc::channel();
    let notifier = journal.acknowledger().notifier(move || sender.send(()).unwrap_or(()));
    let receipt = published(&journal);
    journal.acknowledger().wait(receipt).expect("a disk without faults");
    assert_eq!(notifier.ask(receipt), Ok(true));
    drop(journal);
    assert_eq!(woken.try_iter().count(), 0);
}

#[test]
fn what_a_kill_must_not_take_is_written_by_the_thread_that_asks() {
    let journal = opened(&SimDisk::new(0, Model::Disk), Durability::Process);
    let notifier = journal.acknowledger().notifier(|| {});
    for _ in 0..100 {
        let receipt = published(&journal);
        assert_eq!(notifier.ask(receipt), Ok(true));
    }
}

#[test]
fn where_no_thread_syncs_the_one_that_asks_does() {
    let journal = opened_with(&SimDisk::new(0, Model::Disk), Durability::Power, false);
    let notifier = journal.acknowledger().notifier(|| {});
    let receipt = published(&journal);
    assert_eq!(notifier.ask(receipt), Ok(true));
    assert_eq!(journal.acknowledger().is_durable(receipt), Ok(true));
}

#[test]
fn what_is_durable_is_told_after_a_failure_and_what_is_not_taken_in_never() {
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
fn who_reads_what_a_failure_left_has_nothing_to_wait_for() {
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
fn what_is_buffered_is_synced_though_nobody_asks() {
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
fn a_word_is_durable_when_the_log_has_come_as_far_as_it_was_then() {
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
