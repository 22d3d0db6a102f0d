//! HiKV on the journal, used as an event loop does: every operation is deferred, and the result is reported when the
//! receipt is durable. In between, other callers meet data that is not durable yet, and such values must not be
//! reported to a caller.

use std::ops::Bound;

use engine::prelude::*;
use engine_hikv::HiKv;
use heap::Parameters;
use journal::{JournalOptions, Journaled};
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Crashable, DiskImage, Model, SimDisk};
use testkit::{
    Contents, Direction, Failure, OnDisk, Op, Operations, PAUSE, Script, Settings, Space, Subject, Verdict, Visit,
    Visitor, hunt, small_journal, survives,
};

use crate::batches::batch;
use crate::journaled::{settings, sparing};
use crate::scripts::{
    around_a_split, compared, delete, everyday, in_order, multi_put, put, several_at_once, up_to_a_split,
};
use crate::subject::{Crashed, Kept, NoOrder, REGION_BYTES, WithOrder};

/// The store, with deferred operations.
pub(crate) struct Deferring<O: Kept = NoOrder>(Crashed<O, OnDisk>);

impl<O: Kept> Deferring<O> {
    /// Runs `operate` deferred and returns its result once it may be reported.
    fn acknowledged<R>(&self, operate: impl FnOnce(&Crashed<O, OnDisk>) -> Result<R, Failure>) -> Result<R, Failure> {
        let medium = self.0.0.medium();
        let journal = medium.inner().acknowledger();
        let (result, receipt) = journal.deferred(|| operate(&self.0));
        medium.probe().pause();
        journal.wait(receipt).map_err(|error| Failure::Other(error.to_string()))?;
        result
    }
}

impl<O: Kept> Operations for Deferring<O> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.acknowledged(|store| store.get(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.acknowledged(|store| store.put(key, value))
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        self.acknowledged(|store| store.multi_put(items))
    }

    fn put_expiring(&self, key: &[u8], value: &[u8], at_ms: u64) -> Result<(), Failure> {
        self.acknowledged(|store| store.put_expiring(key, value, at_ms))
    }

    fn expire(&self, key: &[u8], at_ms: Option<u64>) -> Result<bool, Failure> {
        self.acknowledged(|store| store.expire(key, at_ms))
    }

    fn batch(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        self.acknowledged(|store| store.batch(changes))
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        // No key expires here. Looking up expiry times would be a second read, which waits on its own.
        self.acknowledged(|store| store.scan_values(from, direction, each))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.acknowledged(|store| store.delete(key))
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        self.acknowledged(|store| store.compare_and_swap(key, expected, new))
    }

    fn clear(&self) -> Result<(), Failure> {
        self.acknowledged(Operations::clear)
    }

    fn compact(&self) -> Result<(), Failure> {
        self.acknowledged(Operations::compact)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.acknowledged(Operations::len)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.acknowledged(|store| store.for_each(each))
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        self.0.check()
    }
}

impl<O: Kept> Subject for Deferring<O> {
    type Medium = SimDisk;

    fn format(on: SimDisk) -> Result<Deferring<O>, Failure> {
        Crashed::format(on).map(Deferring)
    }

    fn open(on: SimDisk) -> Result<Deferring<O>, Failure> {
        Crashed::open(on).map(Deferring)
    }

    fn open_to_read(on: SimDisk) -> Option<Result<Deferring<O>, Failure>> {
        Some(Self::open(on))
    }

    fn set_time(now_ms: u64) {
        Crashed::<O, OnDisk>::set_time(now_ms);
    }

    fn close(self) -> Result<(), Failure> {
        self.0.close()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.0.settle()
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        self.0.space(contents)
    }
}

pub(crate) fn passes<O: Kept>(scripts: &[Script], settings: &Settings) -> testkit::Counts {
    survives::<Deferring<O>>(scripts, settings)
}

/// Batches that insert, replace and delete, followed by further writes of the same keys.
pub(crate) fn batches() -> Script {
    let ops = [
        put("b", "0"),
        batch([("a", Some("1")), ("b", Some("2"))]),
        delete("a"),
        batch([("a", Some("3")), ("b", None), ("c", Some("4"))]),
        batch([("c", None::<&str>), ("b", Some("5"))]),
        Op::Reopen,
        put("c", "6"),
    ];
    Script::fresh(81, ops)
}

/// A split in the middle of puts that no caller has waited for.
fn split_among_many() -> Script {
    let setup = up_to_a_split();
    let next = setup.len() as u32;
    let many = multi_put((next - 40..next + 10).map(|i| (i.to_be_bytes(), "w")));
    Script::after(82, setup, [many])
}

#[test]
fn acknowledged_writes_survive() {
    let counts = passes::<NoOrder>(&everyday(), &settings());
    assert!(counts.reach(300, 0, 50), "{counts:?}");
    passes::<NoOrder>(&[vec![several_at_once(), batches()], compared()].concat(), &settings());
}

#[test]
fn acknowledged_writes_around_split_survive() {
    passes::<NoOrder>(&[around_a_split(), split_among_many()], &sparing());
}

#[test]
fn acknowledged_ordered_writes_survive() {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::WriterAfter(4), Visitor::ScannerAt(PAUSE)];
    passes::<WithOrder>(&in_order(), &Settings { visitors, ..sparing() });
}

/// Settings for broken variants: `visitor` is the only visitor, so that no other reader settles anything first.
fn visited_by(visitor: Visitor) -> Settings {
    Settings {
        images_per_step_max: 40,
        images_per_op_max: 40,
        nested_images_max: 0,
        visitors: vec![visitor],
        ..settings()
    }
}

fn caught<O: Kept>(canary: Canary, script: Script, visitor: Visitor) {
    let verdict = hunt::<Deferring<O>>(canary, &[script], &visited_by(visitor));
    assert!(matches!(verdict, Verdict::Caught(_)), "{canary:?} was not caught: {verdict:?}");
}

#[test]
fn stores_reporting_too_early_are_caught() {
    let reader = Visitor::ReaderAt(PAUSE);
    caught::<NoOrder>(index::canary::DEFERRED_SETTLED, everyday().remove(0), reader);
    caught::<NoOrder>(journal::canary::PUBLISHED_UNNOTED, everyday().remove(0), reader);
    caught::<NoOrder>(index::canary::BATCH_SETTLED_EARLY, batches(), reader);
}

#[test]
fn scans_reporting_too_early_are_caught() {
    caught::<WithOrder>(engine_hikv::canary::DEFERRED_SCAN_REPORTED, in_order().remove(0), Visitor::ScannerAt(PAUSE));
}

/// Puts keys until a put that is not waited for splits a segment, then reads that key. Returns whether the result of
/// the read may be reported immediately, and how many crash images then lack the key.
///
/// The log is so large that the split does not fill it: a checkpoint would sync the copied entries, and the bug would
/// not show.
fn acknowledged_copy(canary: Option<Canary>) -> (bool, usize) {
    let disk = SimDisk::new(0, Model::Disk);
    let disk = canary.map_or(disk.clone(), |canary| disk.with_canary(canary));
    let roomy = || JournalOptions { log_bytes_max: 3 << 20, segment_bytes: 1 << 20, ..small_journal() };
    let journal = Journaled::create(disk.files(), REGION_BYTES, [7; 16], roomy()).unwrap();
    let acknowledger = journal.acknowledger();
    let parameters = Parameters { uuid: [7; 16], hash_seed: 1, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(journal, HostDram, &parameters).unwrap();
    let split = (0..2000u32).map(u32::to_be_bytes).find(|key| {
        let (put, receipt) = acknowledger.deferred(|| store.put(key, b"value"));
        put.unwrap();
        let has_split = store.stats().figure("split_count").unwrap() > 0.0;
        has_split || acknowledger.wait(receipt).map(|()| false).unwrap()
    });
    let key = split.expect("so many keys split a segment");
    let (found, receipt) = acknowledger.deferred(|| store.get(&key, &mut |_, _, _| {}));
    assert!(found.unwrap());
    let lacks = |image: &DiskImage| {
        let disk = SimDisk::from_image(image, Model::Disk);
        let store = HiKv::open(Journaled::open(disk.files(), roomy(), &|_| {}).unwrap(), HostDram).unwrap();
        !store.get(&key, &mut |_, _, _| {}).unwrap()
    };
    let lost_count = disk.images(40, 7).iter().filter(|image| lacks(image)).count();
    (acknowledger.is_durable(receipt).unwrap(), lost_count)
}

#[test]
fn reader_waits_for_split_copies() {
    let (is_acknowledged, lost_count) = acknowledged_copy(None);
    assert!(!is_acknowledged && lost_count > 0, "all was durable, which shows nothing");
    let (is_acknowledged, lost_count) = acknowledged_copy(Some(index::canary::SPLIT_SETTLES_FRESH));
    assert!(is_acknowledged && lost_count > 0, "the broken variant was not caught");
}
