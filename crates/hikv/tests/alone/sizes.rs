//! Free space serves every size: an open region that was filled with values of one size, and emptied, holds as much of
//! any other size as a new region.

use hikv::{Durability, EngineKind, Options, Store, WriteBatch};
use tempfile::{TempDir, tempdir};

use crate::alone;
use testkit::Extent;

const REGION_BYTES: u64 = 24 << 20;

/// Lengths for slots of small chunks, slots of large chunks, and extents. A hash index keeps the segments of many
/// small items until the store is cleared, so its smallest values are longer.
fn value_lens_bytes(engine: EngineKind) -> [usize; 6] {
    let is_hash = matches!(engine, EngineKind::HiKv | EngineKind::RewoHash);
    [if is_hash { 2_000 } else { 600 }, 7_000, 30_000, 80_000, 200_000, 700_000]
}

/// Returns the required share of a new region's capacity. InK's nodes, the nodes and log of PMEKV, and Rewo-Hash's
/// segments, whose number depends on the store's seed, stay in place; if they are scattered, a value of 80,000 bytes
/// gets an extent of two units.
fn percent_min(engine: EngineKind) -> usize {
    match engine {
        EngineKind::Pmekv => 70,
        EngineKind::Ink | EngineKind::RewoHash => 85,
        _ => 90,
    }
}

fn fresh_store(engine: EngineKind, background: bool) -> (TempDir, Store) {
    let dir = tempdir().unwrap();
    let options = Options::new().engine(engine).region_bytes_max(REGION_BYTES).durability(Durability::Process);
    (options.background(background).open(dir.path()).map(|store| (dir, store))).unwrap()
}

/// Puts values of this size until one is refused. Returns the number of keys.
fn fill(store: &Store, turn: usize, len_bytes: usize) -> usize {
    let value = vec![turn as u8; len_bytes];
    let is_refused = |number: &usize| match store.put(format!("{turn}:{number}"), &value) {
        Ok(()) => false,
        Err(error) => error.is_full().then_some(true).expect("no error but of a full region"),
    };
    (0..).find(is_refused).expect("a region has an end")
}

fn delete(store: &Store, turn: usize, count: usize) {
    for number in 0..count {
        assert!(store.delete(format!("{turn}:{number}")).unwrap());
    }
    assert_eq!(store.len().unwrap(), 0);
}

/// Returns a sequence of sizes in which each follows each other one, beginning with the first.
fn all_orders(count: usize) -> Vec<usize> {
    let pairs = |from| (0..count).filter(move |&to| to != from).map(move |to| (from, to));
    let mut left: Vec<_> = (0..count).flat_map(pairs).collect();
    let mut sizes = vec![0];
    while !left.is_empty() {
        let from = *sizes.last().expect("it begins with one");
        let next = left.iter().position(|(one, _)| *one == from);
        sizes.push(next.map_or(left[0].0, |next| left.swap_remove(next).1));
    }
    sizes
}

fn every_size_follows_every_other(engine: EngineKind, background: bool) {
    let lens_bytes = value_lens_bytes(engine);
    let fresh_counts = lens_bytes.map(|len_bytes| fill(&fresh_store(engine, background).1, 0, len_bytes));
    let (_dir, store) = fresh_store(engine, background);
    let mut sizes_before = vec![];
    for (turn, size) in all_orders(lens_bytes.len()).into_iter().enumerate() {
        let (count, fresh_count) = (fill(&store, turn, lens_bytes[size]), fresh_counts[size]);
        assert!(
            count * 100 >= fresh_count * percent_min(engine),
            "{engine}: {count} values of {} bytes, {fresh_count} in a fresh region; before: {sizes_before:?}",
            lens_bytes[size]
        );
        delete(&store, turn, count);
        sizes_before.push(lens_bytes[size]);
    }
    assert!(store.verify(|_| {}).unwrap().damage.is_empty());
}

#[test]
fn free_space_serves_every_size() {
    let _alone = alone();
    for (number, &engine) in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy").enumerate() {
        // A sample has every second engine with its background thread, and the others without.
        let both = [number % 2 == 0, number % 2 == 1];
        both[..Extent::pick(1, 2)].iter().for_each(|&background| every_size_follows_every_other(engine, background));
    }
}

/// The region is full but for runs that are too short for a chunk of large slots. A batch gets them, as single puts do.
#[test]
fn batch_gets_the_space_of_single_puts() {
    let _alone = alone();
    for &engine in EngineKind::ALL.iter().filter(|kind| kind.name() != "toy") {
        let (_dir, store) = fresh_store(engine, false);
        let count = fill(&store, 0, 300_000);
        (1..count).step_by(2).take(8).for_each(|number| assert!(store.delete(format!("0:{number}")).unwrap()));
        let value = vec![1; 100_000];
        store.put("single", &value).unwrap_or_else(|error| panic!("{engine}: {error}"));
        let mut batch = WriteBatch::new();
        batch.put("first", &value).put("second", &value).delete("single");
        store.write(&batch).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(store.get("second").unwrap().as_deref(), Some(&value[..]));
        assert!(store.verify(|_| {}).unwrap().damage.is_empty());
    }
}
