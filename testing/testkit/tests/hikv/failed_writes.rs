//! A disk that fails under a write, in every engine: acknowledged data can still be read, and is present when the store
//! is opened again.

use std::collections::BTreeMap;

use engine::{BatchOp, Engine, Error, Expiry};
use engine_hikv::HiKv;
use engine_ink::Ink;
use engine_pmekv::Pmekv;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use journal::{JournalOptions, Journaled};
use pmem::{Durability, MediumError};
use pmem_os::HostDram;
use pmem_sim::{Crashable, Fault, Model, SimDisk, SimFile};
use testkit::small_journal;

pub(super) const REGION_BYTES: u64 = 4 << 20;
pub(super) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 1, partition_count: 1, region_bytes: REGION_BYTES };

/// More keys than a leaf of InK holds, so that one is split.
const KEY_COUNT: u8 = 70;

pub(super) type Journal = Journaled<SimFile>;
pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The creation and opening of an engine's stores.
pub(super) struct Kind {
    pub(super) format: fn(Journal) -> Box<dyn Engine>,
    pub(super) open: fn(Journal) -> Box<dyn Engine>,
}

pub(super) const KINDS: [Kind; 4] = [
    Kind {
        format: |journal| Box::new(HiKv::format(journal, HostDram, &PARAMETERS).unwrap()),
        open: |journal| Box::new(HiKv::open(journal, HostDram).unwrap()),
    },
    Kind {
        format: |journal| Box::new(RewoHash::format(journal, HostDram, &PARAMETERS).unwrap()),
        open: |journal| Box::new(RewoHash::open(journal, HostDram).unwrap()),
    },
    Kind {
        format: |journal| Box::new(Ink::format(journal, HostDram, &PARAMETERS, Default::default()).unwrap()),
        open: |journal| Box::new(Ink::open(journal, HostDram, Default::default()).unwrap()),
    },
    Kind {
        format: |journal| Box::new(Pmekv::format(journal, HostDram, &PARAMETERS, Default::default()).unwrap()),
        open: |journal| Box::new(Pmekv::open(journal, HostDram, Default::default()).unwrap()),
    },
];

/// A write and the keys that it changes.
struct Write {
    keys: &'static [u8],
    carry_out: fn(&dyn Engine) -> Result<(), Error>,
}

const WRITES: [Write; 6] = [
    Write { keys: &[200], carry_out: |store| store.put(&key(200), &new(200)) },
    Write { keys: &[35], carry_out: |store| store.put(&key(35), &new(35)) },
    Write { keys: &[36], carry_out: |store| store.delete(&key(36)).map(drop) },
    Write { keys: &[37], carry_out: |store| store.expire(&key(37), Expiry::at_ms(u64::MAX / 2)).map(drop) },
    Write { keys: &[38], carry_out: |store| store.put(&key(38), &[9; 200]) },
    Write {
        keys: &[2, 40, 201],
        carry_out: |store| {
            let [first, second, third] = [2, 40, 201].map(key);
            store.write_batch(&[
                BatchOp::Put { key: &first, value: &new(2) },
                BatchOp::Delete { key: &second },
                BatchOp::Put { key: &third, value: &new(201) },
            ])
        },
    },
];

fn key(number: u8) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

fn old(number: u8) -> Vec<u8> {
    vec![number; 40]
}

fn new(number: u8) -> Vec<u8> {
    vec![number ^ 0xFF; 40]
}

fn journal_options(level: Durability) -> JournalOptions {
    JournalOptions { level, ..small_journal() }
}

/// Returns a store of acknowledged keys.
fn filled(kind: &Kind, disk: &SimDisk, level: Durability) -> (Box<dyn Engine>, Contents) {
    let journal = Journaled::create(disk.files(), REGION_BYTES, PARAMETERS.uuid, journal_options(level)).unwrap();
    let store = (kind.format)(journal);
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &old(number)).unwrap());
    (store, (0..KEY_COUNT).map(|number| (key(number), old(number))).collect())
}

pub(super) fn get(store: &dyn Engine, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut copy = None;
    store.get(key, &mut |_, _, value| copy = Some(value.to_vec()))?;
    Ok(copy)
}

pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Medium(MediumError::Poisoned { .. }))
}

/// Checks that everything acknowledged is present, except the keys that `write` changes.
fn assert_kept(store: &dyn Engine, acknowledged: &Contents, write: &Write, when: &str) {
    for (key, value) in acknowledged.iter().filter(|(found, _)| !write.keys.iter().any(|&own| key(own) == **found)) {
        let (found, name) = (get(store, key), String::from_utf8_lossy(key));
        let is_there = matches!(&found, Ok(Some(found)) if found == value);
        assert!(is_there, "{}, {name} {when} of {:?}: {found:?}", store.name(), write.keys);
    }
}

/// Carries out one write while the disk operation of this number fails. Returns `None` if the write ended before that
/// operation, otherwise whether the store failed.
fn fail(kind: &Kind, write: &Write, number: u64, level: Durability) -> Option<bool> {
    let disk = SimDisk::new(0, Model::Disk);
    let (store, acknowledged) = filled(kind, &disk, level);
    let before = disk.operation_count();
    disk.fail(Some(Fault::Error(before + number)));
    let written = (write.carry_out)(&*store);
    // At a level that does not sync, it is this sync that fails.
    let synced = store.sync();
    let has_failed = store.health().is_err();
    if !has_failed {
        // A region that cannot grow refuses the write, and nothing else.
        assert!(written.as_ref().err().is_none_or(|error| matches!(error, Error::Medium(MediumError::Os { .. }))));
        assert_kept(&*store, &acknowledged, write, "after a refusal");
        return (disk.operation_count() >= before + number).then_some(false);
    }
    assert!(written.as_ref().err().is_none_or(is_refusal) && synced.is_err(), "{}: {written:?}", store.name());
    let is_acknowledged = written.is_ok();
    for refused in WRITES.iter().filter(|other| other.keys != write.keys) {
        assert!((refused.carry_out)(&*store).is_err_and(|error| is_refusal(&error)));
    }
    assert_kept(&*store, &acknowledged, write, "after the failure");
    let seen: Vec<_> = write.keys.iter().map(|&own| (key(own), get(&*store, &key(own)))).collect();
    disk.fail(Some(Fault::Dead(0)));
    drop(store);
    disk.fail(None);

    let journal = Journaled::open(disk.files(), journal_options(level), &|_| {}).unwrap();
    let again = (kind.open)(journal);
    assert_kept(&*again, &acknowledged, write, "once it is open again");
    // A reader saw nothing of the failed write, or a value that stays.
    for (key, seen) in seen {
        let is_new = |seen: &Option<Vec<u8>>| is_acknowledged || seen.as_ref() != acknowledged.get(&key);
        if let Ok(seen) = seen.as_ref().map_err(|error| assert!(is_refusal(error)))
            && is_new(seen)
        {
            assert_eq!(*seen, get(&*again, &key).unwrap(), "{}: a reader saw it", again.name());
        }
    }
    Some(true)
}

#[test]
fn acknowledged_keys_survive_a_failing_disk() {
    for kind in &KINDS {
        for write in &WRITES {
            let failed = (1..).map_while(|number| fail(kind, write, number, Durability::Power));
            assert!(failed.filter(|has_failed| *has_failed).count() >= 2, "the log's write and its sync fail");
        }
    }
}
