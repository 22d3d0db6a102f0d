//! Explores every interleaving of a reader and a writer of two buckets, with the reorderings that the memory model
//! allows, up to a number of preemptions: a slot that is reused, and an item that moves into its other bucket, for
//! an insert and ahead of inserts. Broken variants must be caught: readers that ignore either counter, writers that
//! raise none, and loads and stores without their orders.
//!
//! The code under test is the table's own. Loom controls its locks, counters and pointers (`shared`) and the words
//! of the two buckets (`modelled`), over a region that was filled before. Not covered: durability (the explorer
//! tests it), batches and splits.
//!
//! A run is limited to one preemption, which suffices to catch every broken variant. A longer campaign allows more
//! (two: minutes):
//!
//! ```text
//! LOOM_MAX_PREEMPTIONS=2 cargo test -p hikv-index block_hash::tests::interleavings
//! ```

use std::sync::Arc as Shared;
use std::sync::atomic::Ordering;

use epoch::Limbo;
use heap::{EngineNumber, Heap, Parameters};
use loom::sync::Arc;
use loom::thread;
use pmem::{Canary, Medium, MediumError};
use pmem_sim::{Image, Model as Lines, Sim, SimDram};
use word::model::{Unchanged, Weakening};

use crate::Position;
use crate::block_hash::canary;
use crate::block_hash::layout::{BUCKET_COUNT, bucket, choices};
use crate::block_hash::{BlockHash, Content, Key, Slot};
use crate::segmented::layout::Geometry;
use crate::segmented::{Context, Cursor, Garbage, Segmented};
use word::model::chosen::Model;

use modelled::Modelled;

mod modelled;

/// Unless `LOOM_MAX_PREEMPTIONS` is set.
const PREEMPTION_COUNT: usize = 1;
/// The limit of steps in a run; the longest runs have some hundreds.
const STEP_COUNT_MAX: usize = 20_000;

/// Returns a key with these buckets, a different one for each number.
fn key([first, second]: [u64; 2], number: u64) -> [u8; 16] {
    let count = BUCKET_COUNT as u64;
    let distance = (second + count - first) % count;
    let signature = (first << 16).div_ceil(count) << 16 | ((distance - 1) << 16).div_ceil(count - 1);
    assert_eq!(choices(signature), [first, second].map(|bucket| bucket as usize));
    let mut key = [0; 16];
    key[..8].copy_from_slice(&signature.to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn sign(key: &[u8]) -> u64 {
    u64::from_le_bytes(*key.first_chunk().expect("keys have 16 bytes"))
}

struct Table<M> {
    medium: M,
    heap: Heap<SimDram>,
    table: BlockHash,
    limbo: Limbo<Garbage>,
}

impl Table<Sim> {
    fn format() -> Table<Sim> {
        let medium = Sim::new(0, Lines::Line);
        let parameters = Parameters { uuid: [1; 16], hash_seed: 1, partition_count: 1, region_bytes: 1 << 20 };
        let heap = Heap::format(&medium, EngineNumber::REWO_HASH, &parameters, SimDram).unwrap();
        let table = BlockHash::format(&medium, &heap, Geometry::new(1).unwrap(), Box::new(sign)).unwrap();
        heap.region().finish_format(&medium).unwrap();
        Table { medium, heap, table, limbo: Limbo::default() }
    }
}

impl<M: Medium> Table<M> {
    fn open(medium: M) -> Table<M> {
        let heap = Heap::open(&medium, EngineNumber::REWO_HASH, SimDram).unwrap();
        let limbo = Limbo::default();
        let cx = Context { medium: &medium, heap: &heap, limbo: &limbo };
        let table = BlockHash::open(cx, Geometry::new(1).unwrap(), Box::new(sign)).unwrap();
        Table { medium, heap, table, limbo }
    }

    fn cx(&self) -> Context<'_, M, SimDram> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    fn put(&self, bytes: &[u8; 16], value: u8) {
        let slot = Slot::whole(bytes, &[value; 11]).unwrap();
        let buckets = self.table.lock(self.cx(), sign(bytes));
        let found = buckets.find(Key { bytes, signature: sign(bytes) }, |_| Ok::<_, heap::HeapError>(false)).unwrap();
        let published = match found {
            Some(found) => buckets.replace(&found, &slot),
            None => buckets.insert(&slot).expect("there is space"),
        };
        published.settle(&self.medium).unwrap();
    }

    /// Returns the key's value, or `None` if it is absent.
    fn get(&self, bytes: &[u8; 16]) -> Option<u8> {
        let is_key = |_: Position| Ok::<_, MediumError>(false);
        let slot = self.table.find(&self.medium, Key { bytes, signature: sign(bytes) }, is_key).unwrap()?;
        assert!(slot.is_intact(), "a torn slot was returned");
        let Content::Whole { value, .. } = slot.content() else { panic!("the slot holds no inline item") };
        Some(value[0])
    }
}

/// The initial state of a scene, and the action of its writer. The key is read, and its buckets are modelled.
#[derive(Clone, Copy)]
struct Scene {
    key: fn() -> [u8; 16],
    before: fn(&Table<Sim>),
    write: fn(&Table<Modelled<Unchanged>>),
    /// The same, for a broken variant whose words lack an order.
    write_weakly: fn(&Table<Modelled<Unordered>>),
    values: &'static [u8],
    /// The number of reads of the key during the writer's action.
    read_count: usize,
}

/// Loads and stores without any order.
struct Unordered;

impl Weakening for Unordered {
    fn load(_asked: Ordering) -> Ordering {
        Ordering::Relaxed
    }

    fn store(_asked: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

fn image(before: fn(&Table<Sim>)) -> Image {
    let _pin = epoch::pin();
    let table = Table::format();
    before(&table);
    table.medium.killed().expect("lock bits that are off are not flushed")
}

/// A value that was read once is not replaced by an older one, and the key always exists.
fn read<M: Medium>(table: &Table<M>, key: &[u8; 16], Scene { values, read_count, .. }: Scene) {
    let place = |_| {
        let value = table.get(key).expect("an existing key was not found");
        values.iter().position(|known| *known == value).expect("it was put")
    };
    let places: Vec<_> = (0..read_count).map(place).collect();
    assert!(places.is_sorted(), "a later read returned an older item");
}

fn explore_finds<T: Weakening>(scene: Scene, broken: Option<Canary>, write: fn(&Table<Modelled<T>>)) {
    let (image, key) = (Shared::new(image(scene.before)), (scene.key)());
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(PREEMPTION_COUNT));
    model.max_branches = STEP_COUNT_MAX;
    model.check(move || {
        let _model = Model::enter();
        let _pin = epoch::pin();
        let table = Table::open(Modelled::<T>::new(Sim::from_image(&image, Lines::Line), broken));
        let first = table.table.segments.root().segments().next().expect("there is one").offset();
        table.medium.model(choices(sign(&key)).map(|number| bucket(first, number)));
        let table = Arc::new(table);
        let reader = Arc::clone(&table);
        // The writer comes first: if a thread loads a word before it stores to it, the checker forgets the loads of
        // other threads.
        let reader = thread::spawn(move || read(&reader, &key, scene));
        write(&table);
        reader.join().unwrap();
        assert_eq!(table.get(&key).as_ref(), scene.values.last());
    });
}

fn is_well(scene: Scene) {
    explore_finds::<Unchanged>(scene, None, scene.write);
}

fn broken(scene: Scene, canary: Canary) {
    explore_finds::<Unchanged>(scene, Some(canary), scene.write);
}

fn unordered(scene: Scene) {
    explore_finds::<Unordered>(scene, None, scene.write_weakly);
}

/// A key whose first slot is reused for another value.
fn refilled() -> Scene {
    fn write<M: Medium>(table: &Table<M>) {
        [2, 3].into_iter().for_each(|value| table.put(&key([3, 9], 0), value));
    }
    Scene {
        key: || key([3, 9], 0),
        before: |table| table.put(&key([3, 9], 0), 1),
        write,
        write_weakly: write,
        values: &[1, 2, 3],
        read_count: 1,
    }
}

/// Fills buckets 1 and 2. Only the key's item can leave them: for bucket 0, which is read first.
fn crowd(table: &Table<Sim>) {
    table.put(&key([0, 5], 0), 0);
    table.put(&key([0, 1], 0), 1);
    (0..13).for_each(|number| table.put(&key([1, 2], number), 0));
}

/// An item that moves for the insert of another one.
fn moved() -> Scene {
    fn write<M: Medium>(table: &Table<M>) {
        table.put(&key([1, 2], 13), 0);
        assert_eq!(table.table.move_count(), 1);
    }
    Scene { key: || key([0, 1], 0), before: crowd, write, write_weakly: write, values: &[1], read_count: 2 }
}

/// An item that moves ahead of inserts.
fn relieved() -> Scene {
    fn write<M: Medium>(table: &Table<M>) {
        assert_eq!(table.table.pre_evict(table.cx(), Cursor::default()).0, 1);
    }
    Scene { write, write_weakly: write, ..moved() }
}

#[test]
fn reused_slot_is_read_completely() {
    is_well(refilled());
}

#[test]
fn an_item_that_moves_is_found() {
    is_well(moved());
    is_well(relieved());
}

#[test]
#[should_panic]
fn reader_without_its_first_counter_is_caught() {
    broken(refilled(), canary::FIRST_COUNTER_IGNORED);
}

#[test]
#[should_panic(expected = "an existing key was not found")]
fn reader_without_its_second_counter_is_caught() {
    broken(moved(), canary::SECOND_COUNTER_IGNORED);
}

#[test]
#[should_panic]
fn uncounted_slot_reuse_is_caught() {
    broken(refilled(), canary::REFILL_NOT_COUNTED);
}

#[test]
#[should_panic(expected = "an existing key was not found")]
fn move_that_is_not_counted_is_caught() {
    broken(relieved(), canary::MOVE_NOT_COUNTED);
}

#[test]
#[should_panic]
fn words_without_an_order_are_caught() {
    unordered(refilled());
}

#[test]
#[should_panic(expected = "an existing key was not found")]
fn unordered_move_words_are_caught() {
    unordered(moved());
}
