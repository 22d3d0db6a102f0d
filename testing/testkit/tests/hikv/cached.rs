//! HiKV with a read cache: answers like a map, crashes, contention, and broken variants.

use engine::prelude::*;
use engine_hikv::HiKv;
use heap::Parameters;
use index::cached_table::canary;
use journal::Journaled;
use pmem::Canary;
use pmem_os::HostDram;
use pmem_sim::{Crashable, DiskImage, Model, Sim, SimDisk};
use testkit::{
    Contention, Op, Operations, PAUSE, Restless, Script, Settings, Shape, Subject, Visitor, catches, conformance,
    contend, small_journal, survives,
};

use crate::deferred;
use crate::journaled::sparing as on_disk;
use crate::scripts::{everyday, expiring, put};
use crate::settings;
use crate::subject::{Cached, Kept, NoOrder, REGION_BYTES, WithOrder};

type Crashed = crate::subject::Crashed<Cached>;

fn sparing() -> Settings {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways];
    Settings { visitors, images_per_op_max: 3, nested_images_max: 0, ..settings() }
}

#[test]
fn it_answers_like_a_map() {
    let shape = Shape {
        multi_puts: true,
        batches: true,
        conditions: true,
        swaps: true,
        scans: true,
        clears: true,
        ..Shape::small(1000)
    };
    let new = || -> Box<dyn Operations> { Box::new(crate::scripts::new_store::<Crashed>()) };
    let compared = conformance(new, &shape, 0..3);
    assert!(compared.unwrap_or_else(|mismatch| panic!("{mismatch}")) >= 3000);
}

#[test]
fn it_survives_crashes() {
    let snapshots = Shape { snapshots: true, batches: true, ..Shape::small(6) };
    let scripts: Vec<_> = expiring().into_iter().take(1).chain([Script::seeded(5, &snapshots)]).collect();
    let counts = survives::<Crashed>(&scripts, &sparing());
    assert!(counts.reach(20, 20, 20), "{counts:?}");
}

fn is_caught(canary: Canary, script: Script) {
    catches::<Crashed>(canary, &[script], &Settings { models: vec![Model::Line], ..sparing() });
}

#[test]
fn broken_variants_are_caught() {
    let twice = || Script::fresh(1, [put("a", "1"), put("a", "2"), put("a", "3")]);
    is_caught(canary::COPY_SHOWN_EARLY, twice());
    is_caught(canary::COPY_HIDDEN_LATE, twice());
    is_caught(canary::CLEAR_HIDES_NOTHING, Script::fresh(2, [put("a", "1"), put("a", "2"), Op::Clear]));
    let batch = Op::Batch(vec![(b"a".to_vec(), Some(b"3".to_vec())), (b"b".to_vec(), None)]);
    is_caught(canary::BATCH_HIDES_NOTHING, Script::fresh(3, [put("a", "1"), put("b", "2"), batch]));
}

/// Writes as an event loop does: a reader in between sees no cached copy of data that a loss of power may take.
#[test]
fn cache_shows_only_awaited_values() {
    let visitors = vec![Visitor::Nobody, Visitor::ReaderAlways, Visitor::ReaderAt(PAUSE), Visitor::WriterAfter(4)];
    let settings = Settings { visitors, nested_images_max: 0, ..on_disk() };
    let counts = deferred::passes::<Cached>(&[everyday().remove(0), deferred::batches()], &settings);
    assert!(counts.reach(100, 0, 20), "{counts:?}");
}

/// Puts a key without waiting, then reads it. Returns whether the result of the read may be reported immediately, and
/// how many crash images then lack the key. (The explorer's visitors also walk the store, which waits for everything.)
fn acknowledged_deferred_put(canary: Option<Canary>) -> (bool, usize) {
    let disk = SimDisk::new(0, Model::Disk);
    let disk = canary.map_or(disk.clone(), |canary| disk.with_canary(canary));
    let journal = Journaled::create(disk.files(), REGION_BYTES, [7; 16], small_journal()).unwrap();
    let acknowledger = journal.acknowledger();
    let parameters = Parameters { uuid: [7; 16], hash_seed: 1, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(journal, HostDram, &parameters).unwrap().caching(1, HostDram).unwrap();
    acknowledger.deferred(|| store.put(b"key", b"value")).0.unwrap();
    let (found, receipt) = acknowledger.deferred(|| store.get(b"key", &mut |_, _, _| {}));
    assert!(found.unwrap());
    let lacks = |image: &DiskImage| {
        let disk = SimDisk::from_image(image, Model::Disk);
        let store = HiKv::open(Journaled::open(disk.files(), small_journal(), &|_| {}).unwrap(), HostDram).unwrap();
        !store.get(b"key", &mut |_, _, _| {}).unwrap()
    };
    let lost_count = disk.images(40, 7).iter().filter(|image| lacks(image)).count();
    (acknowledger.is_durable(receipt).unwrap(), lost_count)
}

#[test]
fn reader_waits_for_unawaited_put() {
    let (is_acknowledged, lost_count) = acknowledged_deferred_put(None);
    assert!(!is_acknowledged && lost_count > 0, "all was durable, which shows nothing");
    let (is_acknowledged, lost_count) = acknowledged_deferred_put(Some(canary::COPY_SHOWN_DEFERRED));
    assert!(is_acknowledged && lost_count > 0, "the broken variant was not caught");
}

const FEW_KEYS: Contention =
    Contention { thread_count: 3, call_count: 400, key_count: 3, swaps: true, scans: true, clear_every: 150, seed: 1 };

fn assert_linearizable<O: Kept>(contention: &Contention) {
    let store = crate::subject::Crashed::<O, Restless>::format(Sim::new(0, Model::Span)).expect("there is space");
    let judged = contend(&store, contention);
    assert!(judged.unwrap_or_else(|disorder| panic!("{disorder}")) > 0);
    assert_eq!(store.check(), Ok(vec![]));
}

/// In addition to those of the library's tests, whose media never yield between steps.
#[test]
fn histories_without_a_cache_are_linearizable() {
    for seed in 0..2 {
        assert_linearizable::<NoOrder>(&Contention { seed, ..FEW_KEYS });
        assert_linearizable::<WithOrder>(&Contention { seed, ..FEW_KEYS });
    }
}

#[test]
fn histories_under_contention_are_linearizable() {
    for (seed, key_count) in [(1, 1), (2, 3), (3, 12)] {
        assert_linearizable::<Cached>(&Contention { seed, key_count, ..FEW_KEYS });
    }
}
