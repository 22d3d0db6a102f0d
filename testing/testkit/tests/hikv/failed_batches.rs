//! A disk that fails under a batch whose record is longer than a segment of the index and than a segment of the log, in
//! every engine, waited for and deferred. A reader never gets a wrong value, and nothing acknowledged is lost. The
//! batch is complete or absent once the store is open again.
//!
//! Until then, keys outside the batch may be refused: they share a bucket, a leaf or a ticket with its keys.

use engine::{BatchOp, Error};
use journal::{JournalOptions, Journaled};
use pmem::Durability;
use pmem_sim::{Crashable, Fault, Model, SimDisk};
use testkit::small_journal;

use crate::failed_writes::{Contents, KINDS, Kind, PARAMETERS, REGION_BYTES, get, is_refusal};

const KEY_COUNT: u32 = 400;
const CHANGED_COUNT: u32 = 1_100;

fn options(level: Durability) -> JournalOptions {
    JournalOptions { level, log_bytes_max: 1 << 20, segment_bytes: 1 << 16, ..small_journal() }
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

/// Returns the batch: replaces and deletes half of the keys, and adds others.
fn changes() -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let value = |number: u32| (!number.is_multiple_of(4)).then(|| vec![!(number as u8); 60]);
    (KEY_COUNT / 2..KEY_COUNT / 2 + CHANGED_COUNT).map(|number| (key(number), value(number))).collect()
}

/// Writes the batch while the disk operation of this number fails. Returns `None` if the batch ended before that
/// operation, otherwise whether the store failed.
fn fail(kind: &Kind, number: u64, level: Durability, is_deferred: bool) -> Option<bool> {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = Journaled::create(disk.files(), REGION_BYTES, PARAMETERS.uuid, options(level)).unwrap();
    let waiter = journal.acknowledger();
    let store = (kind.format)(journal);
    let acknowledged: Contents = (0..KEY_COUNT).map(|number| (key(number), vec![number as u8; 40])).collect();
    let fill = || acknowledged.iter().try_for_each(|(key, value)| store.put(key, value));
    let (filled, receipt) = waiter.deferred(fill);
    filled.unwrap();
    waiter.wait(receipt).unwrap();

    let changes = changes();
    let ops: Vec<BatchOp<'_>> = (changes.iter())
        .map(|(key, value)| match value {
            Some(value) => BatchOp::Put { key, value },
            None => BatchOp::Delete { key },
        })
        .collect();
    let before = disk.operation_count();
    disk.fail(Some(Fault::Error(before + number)));
    let written = if is_deferred {
        let (written, receipt) = waiter.deferred(|| store.write_batch(&ops));
        written.and_then(|()| Ok(waiter.wait(receipt)?))
    } else {
        store.write_batch(&ops)
    };
    let _ = store.sync();
    let (has_failed, is_met) = (store.health().is_err(), disk.operation_count() >= before + number);
    let what = format!("{}, operation {number} at {level:?}, deferred: {is_deferred}", store.name());
    let is_outside = |key: &[u8]| changes.binary_search_by(|(changed, _)| changed.as_slice().cmp(key)).is_err();
    let outside = || acknowledged.iter().filter(|(key, _)| is_outside(key));
    for (key, value) in outside() {
        match get(&*store, key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value), "{what}"),
            Err(error) => assert!(has_failed && is_refusal(&error), "{what}: {error}"),
        }
    }
    if !has_failed {
        return is_met.then_some(false);
    }
    let seen: Vec<_> = changes.iter().map(|(key, _)| get(&*store, key)).collect();
    disk.fail(Some(Fault::Dead(0)));
    drop(store);
    disk.fail(None);

    let again = (kind.open)(Journaled::open(disk.files(), options(level), &|_| {}).unwrap());
    let value_of = |key: &[u8]| get(&*again, key).unwrap();
    outside().for_each(|(key, value)| assert_eq!(value_of(key).as_ref(), Some(value), "{what}, open again"));
    let is_done = changes.iter().all(|(key, value)| value_of(key) == *value);
    let is_undone = changes.iter().all(|(key, _)| value_of(key).as_ref() == acknowledged.get(key));
    assert!(is_done || is_undone && written.is_err(), "{what}: a part of the batch, or an acknowledged one is lost");
    for ((key, _), seen) in changes.iter().zip(seen) {
        let is_kept = seen.map_or_else(|error: Error| is_refusal(&error), |seen| seen == value_of(key));
        assert!(is_kept, "{what}: a reader saw what is gone");
    }
    Some(true)
}

#[test]
fn batch_on_failing_disk_is_atomic() {
    for (kind, is_deferred) in KINDS.iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for level in [Durability::Power, Durability::Buffered] {
            let failed = (1..).map_while(|number| fail(kind, number, level, is_deferred));
            assert!(failed.filter(|has_failed| *has_failed).count() >= 2, "the log's write and its sync fail");
        }
    }
}
