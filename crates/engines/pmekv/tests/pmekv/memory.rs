//! A `Dram` that allocates no more memory: refused operations have no effect, and the store continues.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use engine::prelude::*;
use engine::{BatchOp, Direction, Error, ScanCursor};
use engine_pmekv::{Options, Pmekv, canary};
use pmem::{Canary, Dram};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};

use crate::subject::PARAMETERS;

const PLENTY: usize = usize::MAX / 2;

/// The minimum size of the tree's allocations; the heap's are smaller.
const CHUNK_BYTES: usize = 64 << 10;

/// Allocates at most so many bytes more in chunks.
#[derive(Clone, Default)]
struct Purse(Arc<AtomicUsize>);

// SAFETY: all memory comes from `HostDram`.
unsafe impl Dram for Purse {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let spend = |left: usize| left.checked_sub(if layout.size() < CHUNK_BYTES { 0 } else { layout.size() });
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).ok()?;
        HostDram.allocate(layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { HostDram.deallocate(memory, layout) }
    }
}

impl Purse {
    fn hold(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents<D: Dram>(store: &Pmekv<Sim, D>) -> Contents {
    let mut contents = Contents::new();
    let mut cursor = engine::Cursor::Start;
    while !cursor.is_done() {
        let mut note = |key: &[u8], value: &[u8], _| drop(contents.insert(key.to_vec(), value.to_vec()));
        cursor = store.walk(cursor, &mut note).unwrap();
    }
    contents
}

/// Returns all keys in the order of a scan.
fn scanned<D: Dram>(store: &Pmekv<Sim, D>, direction: Direction) -> Vec<Vec<u8>> {
    let (mut keys, mut cursor) = (Vec::new(), ScanCursor::new(Bound::Unbounded, direction));
    let mut note = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    };
    while store.scan(&mut cursor, &mut note).unwrap() {}
    keys
}

/// Returns a store of 200 keys that cannot allocate more memory.
fn made(canary: Canary) -> (Sim, Purse, Pmekv<Sim, Purse>, Contents) {
    let (sim, purse, mut model) = (Sim::new(0, Model::Line).with_canary(canary), Purse::default(), Contents::new());
    purse.hold(PLENTY);
    let store = Pmekv::format(sim.clone(), purse.clone(), &PARAMETERS, Options::default()).unwrap();
    puts(&store, &mut model, 0..200);
    purse.hold(0);
    (sim, purse, store, model)
}

fn reopened(sim: &Sim) -> Result<Contents, String> {
    opened(&sim.images(1, 0).remove(0))
}

fn opened(image: &Image) -> Result<Contents, String> {
    let sim = Sim::from_image(image, Model::Line);
    Pmekv::open(sim, HostDram, Options::default()).map(|store| contents(&store)).map_err(|error| error.to_string())
}

fn key(number: u32) -> Vec<u8> {
    format!("{:08x} a key of some length {number}", number.wrapping_mul(0x9E37_79B9)).into_bytes()
}

fn is_no_memory<T>(done: Result<T, Error>) -> bool {
    match done {
        Ok(_) => false,
        Err(Error::NoMemory { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn puts(store: &Pmekv<Sim, Purse>, model: &mut Contents, numbers: Range<u32>) {
    for number in numbers {
        if !is_no_memory(store.put(&key(number), &number.to_le_bytes())) {
            model.insert(key(number), number.to_le_bytes().to_vec());
        }
    }
}

/// Returns true if log and tree stay equal.
fn takes_back_what_found_no_memory(canary: Canary) -> bool {
    let (sim, purse, store, mut model) = made(canary);
    puts(&store, &mut model, 200..6_000);
    assert!(model.len() < 6_000, "memory ran out");
    assert!(contents(&store) == model);
    let is_refused = reopened(&sim).is_ok_and(|found| found == model);
    purse.hold(PLENTY);
    puts(&store, &mut model, 200..6_000);
    assert!(model.len() == 6_000 && contents(&store) == model);
    is_refused && reopened(&sim).is_ok_and(|found| found == model)
}

#[test]
fn put_without_memory_did_not_happen() {
    assert!(takes_back_what_found_no_memory(Canary("none")));
    assert!(!takes_back_what_found_no_memory(canary::NOT_TAKEN_BACK));
}

/// A crash during that leaves the key present or absent, and never a store that does not open.
#[test]
fn crash_during_undone_put_leaves_either() {
    let (_, _purse, store, _) = made(Canary("none"));
    let refused = (200..).find(|number| is_no_memory(store.put(&key(*number), b""))).unwrap();
    let (sim, _purse, store, mut model) = made(Canary("none"));
    puts(&store, &mut model, 200..refused);
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim, _| noted.lock().unwrap().extend(sim.images(12, sim.step_count()))));
    assert!(is_no_memory(store.put(&key(refused), b"taken back")));
    sim.unobserve();
    let found: Vec<_> = images.lock().unwrap().iter().map(|image| opened(image).unwrap()).collect();
    let changed = Contents::from([(key(refused), b"taken back".to_vec())]).into_iter().chain(model.clone()).collect();
    assert!(found.iter().all(|found| *found == model || *found == changed));
    assert!(found.contains(&model) && found.contains(&changed));
    assert!(reopened(&sim) == Ok(model));
}

/// The batch is valid already: readers see it, by key and in order, and further writes fail.
#[test]
fn batch_without_memory_is_complete() {
    let (sim, purse, store, mut model) = made(Canary("none"));
    let keys: Vec<Vec<u8>> = (0..6_000).map(key).collect();
    let ops: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: b"batch" }).collect();
    assert!(is_no_memory(store.write_batch(&ops)));
    purse.hold(PLENTY);
    assert!(keys.iter().all(|key| store.get(key, &mut |_, _, value| assert_eq!(value, b"batch")).unwrap()));
    model.extend(keys.iter().map(|key| (key.clone(), b"batch".to_vec())));
    assert!(contents(&store) == model);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut scanned: Vec<_> = scanned(&store, direction);
        if direction == Direction::Backward {
            scanned.reverse();
        }
        assert!(scanned.iter().eq(model.keys()), "{direction:?}");
    }
    let one = [BatchOp::Delete { key: &keys[0] }];
    let refused = [store.put(b"key", b""), store.write_batch(&one), store.clear(), store.checkpoint()];
    assert!(refused.iter().all(|done| matches!(done, Err(Error::Corrupt { .. }))), "{refused:?}");
    store.close().unwrap();
    assert!(reopened(&sim) == Ok(model));
}

/// The memory is allocated before anything irrevocable happens.
#[test]
fn clear_without_memory_did_not_happen() {
    let (sim, purse, store, mut model) = made(Canary("none"));
    puts(&store, &mut model, 200..6_000);
    assert!(is_no_memory(store.clear()));
    assert!(contents(&store) == model && reopened(&sim).as_ref() == Ok(&model));
    purse.hold(PLENTY);
    store.clear().unwrap();
    assert_eq!((store.len().unwrap(), reopened(&sim)), (0, Ok(Contents::new())));
    puts(&store, &mut model, 0..10);
    store.checkpoint().unwrap();
    assert!(contents(&store).len() == 10 && reopened(&sim) == Ok(contents(&store)));
}
