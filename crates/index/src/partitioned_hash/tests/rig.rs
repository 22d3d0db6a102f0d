//! An index over a simulated region, and items for it: a key's number and a value, one word each.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;

use epoch::Limbo;
use heap::{EngineNumber, Heap, Parameters};
use pmem::{Dram, Level, Medium, MediumError, Offset};
use pmem_sim::{Model, Sim};

use super::super::batch::Full;
use super::super::batch::record::record_bytes;
use super::super::layout::Geometry;
use super::super::{Context, Cursor, Found, Garbage, Lookup, PartitionedHash, Published};
use crate::Position;
use crate::partitioned_hash::Slot;

/// A key: its signature, and a number that distinguishes it from others of that signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) signature: u64,
    pub(super) number: u64,
}

pub(super) fn key(signature: u64, number: u64) -> Key {
    Key { signature, number }
}

/// Returns a well-mixed signature for each number.
pub(super) fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ mixed >> 32
}

pub(super) type Contents = BTreeMap<Key, u64>;

/// Allocates from the process' heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host;

// SAFETY: the global allocator's promises.
unsafe impl Dram for Host {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the heap requests no layout of size 0.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}

/// An index and everything on which it works.
pub(super) struct Rig<M: Medium> {
    pub(super) medium: M,
    pub(super) heap: Heap<Host>,
    pub(super) index: PartitionedHash,
    limbo: Limbo<Garbage>,
}

impl Rig<Sim> {
    pub(super) fn new(partition_count: u32) -> Rig<Sim> {
        Rig::format(Sim::new(0, Model::Line), partition_count)
    }

    /// Creates a rig on a log: a published entry keeps its mark until it is settled.
    pub(super) fn on_log() -> Rig<Sim> {
        Rig::format(Sim::new(0, Model::Span), 1)
    }

    /// Returns the same region, opened by another process.
    pub(super) fn reopened(self) -> Rig<Sim> {
        let (medium, partition_count) = (self.medium.clone(), self.index.segments.geometry().partition_count());
        drop(self);
        Rig::opened(medium, partition_count as u32)
    }

    pub(super) fn opened(medium: Sim, partition_count: u32) -> Rig<Sim> {
        Rig::try_opened(medium, partition_count).expect("it is intact")
    }

    /// Returns `None` if the region is damaged.
    pub(super) fn try_opened(medium: Sim, partition_count: u32) -> Option<Rig<Sim>> {
        let geometry = Geometry::new(partition_count).unwrap();
        let heap = Heap::open(&medium, EngineNumber::HIKV, Host).ok()?;
        let limbo = Limbo::default();
        let index = PartitionedHash::open(Context { medium: &medium, heap: &heap, limbo: &limbo }, geometry).ok()?;
        Some(Rig { medium, heap, index, limbo })
    }
}

impl<M: Medium> Rig<M> {
    pub(super) fn format(medium: M, partition_count: u32) -> Rig<M> {
        let parameters = Parameters { uuid: [1; 16], hash_seed: 1, partition_count, region_bytes: 2 << 20 };
        let heap = Heap::format(&medium, EngineNumber::HIKV, &parameters, Host).unwrap();
        let index = PartitionedHash::format(&medium, &heap, Geometry::new(partition_count).unwrap()).unwrap();
        heap.region().finish_format(&medium).expect("the medium does not fail");
        Rig { medium, heap, index, limbo: Limbo::default() }
    }

    pub(super) fn cx(&self) -> Context<'_, M, Host> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// Puts or replaces, and returns the value before.
    pub(super) fn put(&self, key: Key, value: u64) -> Option<u64> {
        let _pin = epoch::pin();
        let position = self.write_item(key, value);
        loop {
            match self.publish(key, position) {
                Ok((published, found)) => return self.finish(published, found),
                Err(full) => self.index.split(self.cx(), key.signature, full).unwrap(),
            }
        }
    }

    /// Removes, and returns the value before.
    pub(super) fn remove(&self, key: Key) -> Option<u64> {
        let _pin = epoch::pin();
        let (published, found) = self.publish_removal(key)?;
        self.finish(published, Some(found))
    }

    /// Puts keys with a value and removes keys without one, as one step. No key occurs twice.
    pub(super) fn write_batch(&self, changes: &[(Key, Option<u64>)]) {
        _ = self.attempts_of_batch(changes);
    }

    /// The same; returns the number of attempts.
    pub(super) fn attempts_of_batch(&self, changes: &[(Key, Option<u64>)]) -> usize {
        let _pin = epoch::pin();
        let mut changes: Vec<_> =
            changes.iter().map(|&(key, value)| (key, value.map(|value| self.write_item(key, value)))).collect();
        changes.sort_by_key(|(key, _)| key.signature);
        let signatures: Vec<_> = changes.iter().map(|(key, _)| key.signature).collect();
        let mut attempt_count = 1;
        while let Err(full) = self.try_batch(&changes, &signatures) {
            self.index.split_for_batch(self.cx(), full, &signatures).unwrap();
            attempt_count += 1;
        }
        attempt_count
    }

    fn try_batch(&self, changes: &[(Key, Option<Position>)], signatures: &[u64]) -> Result<(), Full> {
        let turn = self.index.batch_turn();
        let mut batch = self.index.lock_batch(self.cx(), signatures);
        let mut replaced = Vec::new();
        for (number, &(key, new)) in changes.iter().enumerate() {
            let found = batch.find(number, |position| self.matching(position, key)).unwrap();
            match (&found, new) {
                (Some(found), new) => {
                    let entry = (found.slot.position, found.position);
                    batch.replace(number, 0, entry, new.unwrap_or(Position::EMPTY));
                }
                (None, Some(new)) => batch.insert(number, 0, new),
                (None, None) => {}
            }
            replaced.extend(found.map(|found| found.position.place().unwrap()));
        }
        batch.has_space()?;
        let record = self.heap.reserve(&self.medium, record_bytes(changes.len()), 0).unwrap().publish();
        let _ = batch.commit(turn, record).unwrap();
        replaced.into_iter().for_each(|place| self.cx().retire(Garbage::of(place)));
        Ok(())
    }

    /// Puts or replaces up to the unlock. The error is the offset of a segment without space.
    pub(super) fn publish(&self, key: Key, position: Position) -> Result<(Published, Option<Found<u64>>), Offset> {
        let bucket = self.index.lock(self.cx(), key.signature);
        let found = bucket.find(|position| self.matching(position, key)).unwrap();
        let published = match &found {
            Some(found) => bucket.replace(found, position),
            None => bucket.insert(position)?,
        };
        Ok((published, found))
    }

    /// Removes up to the unlock.
    pub(super) fn publish_removal(&self, key: Key) -> Option<(Published, Found<u64>)> {
        let bucket = self.index.lock(self.cx(), key.signature);
        let found = bucket.find(|position| self.matching(position, key)).unwrap()?;
        Some((bucket.remove(&found), found))
    }

    /// Settles a published entry, and retires the item that it replaced.
    pub(super) fn finish(&self, published: Published, replaced: Option<Found<u64>>) -> Option<u64> {
        published.settle(&self.medium).unwrap();
        let replaced = replaced?;
        self.cx().retire(Garbage::of(replaced.position.place().unwrap()));
        Some(replaced.value)
    }

    pub(super) fn get(&self, key: Key) -> Option<u64> {
        let _pin = epoch::pin();
        let seen = match self.index.lookup(&self.medium, key.signature) {
            Lookup::Nothing => return None,
            Lookup::Entry(position) => self.matching(position, key).unwrap_or_default(),
            Lookup::Unsure => None,
        };
        seen.or_else(|| self.index.find(&self.medium, key.signature, |position| self.matching(position, key)).unwrap())
    }

    /// Returns the place of the key's entry.
    pub(super) fn slot(&self, key: Key) -> Option<Slot> {
        let _pin = epoch::pin();
        let bucket = self.index.lock(self.cx(), key.signature);
        bucket.find(|position| self.matching(position, key)).unwrap().map(|found| found.slot)
    }

    /// Splits the segment of `signature`, or chains one to it.
    pub(super) fn split(&self, signature: u64) {
        let _pin = epoch::pin();
        let segment = self.index.segments.offset(signature);
        self.index.split(self.cx(), signature, segment).unwrap();
    }

    /// Removes everything, and frees it.
    pub(super) fn clear(&self) {
        let cleared = self.index.clear(self.cx()).unwrap();
        cleared.free(self.cx());
    }

    /// Frees retired objects, after the other tests' threads have moved on.
    pub(super) fn free_garbage(&self) {
        while !self.limbo.is_empty() {
            self.cx().collect();
        }
    }

    /// Returns the number of retired objects that are not free yet.
    pub(super) fn waiting_count(&self) -> u64 {
        self.limbo.len()
    }

    /// Sweeps everything.
    pub(super) fn sweep(&self) {
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            cursor = self.sweep_step(cursor);
        }
        self.heap.sweep().finish(&self.medium);
    }

    /// Sweeps one segment.
    pub(super) fn sweep_step(&self, cursor: Cursor) -> Cursor {
        self.index.sweep(self.cx(), cursor, &mut |misplaced| panic!("{misplaced:?}")).unwrap()
    }

    /// Makes one step of a walk: inserts the items of one segment into `into`, each for the first time.
    pub(super) fn visit_step(&self, cursor: Cursor, into: &mut Contents) -> Cursor {
        let _pin = epoch::pin();
        let next = self.index.visit(&self.medium, cursor, |signature, position| {
            let (number, value) = item(&self.medium, position);
            assert_eq!(into.insert(key(signature, number), value), None, "an entry was shown twice");
            Ok::<_, MediumError>(())
        });
        next.unwrap()
    }

    pub(super) fn contents(&self) -> Contents {
        let (mut cursor, mut contents) = (Cursor::default(), Contents::new());
        while !cursor.is_done() {
            cursor = self.visit_step(cursor, &mut contents);
        }
        contents
    }

    /// Returns the damage that the index's own check reports.
    pub(super) fn damage(&self) -> Vec<String> {
        let _pin = epoch::pin();
        let (mut cursor, mut damage) = (Cursor::default(), Vec::new());
        while !cursor.is_done() {
            let mut damaged = |found| damage.push(format!("{found:?}"));
            cursor = self.index.check_segment(&self.medium, cursor, &|_| true, &mut damaged, &mut |_, _, _, _| {});
        }
        damage
    }

    /// Writes an item that is durable before anything flushed from now on.
    pub(super) fn write_item(&self, key: Key, value: u64) -> Position {
        let position = Position::of(self.heap.reserve(&self.medium, 16, 0).unwrap().publish());
        self.fill_item(position, key, value);
        position
    }

    /// Like [`Rig::write_item`], in space that the caller knows to be free.
    pub(super) fn fill_item(&self, position: Position, key: Key, value: u64) {
        let bytes = [key.number.to_le_bytes(), value.to_le_bytes()].concat();
        // SAFETY: the place is free.
        unsafe { self.medium.stream(position.offset(), &[&bytes]) };
        self.medium.wait(self.medium.commit(Level::Strongest)).unwrap();
    }

    /// Makes everything that this thread flushed durable.
    pub(super) fn commit_all(&self) {
        self.medium.wait(self.medium.commit(Level::Strongest)).unwrap();
    }

    pub(super) fn matching(&self, position: Position, key: Key) -> Result<Option<u64>, MediumError> {
        let (number, value) = item(&self.medium, position);
        Ok((number == key.number).then_some(value))
    }
}

/// Returns the number of an item's key, and its value.
pub(super) fn item<M: Medium>(medium: &M, position: Position) -> (u64, u64) {
    // SAFETY: items do not change, and the tests free none that they read.
    let bytes = unsafe { medium.bytes(position.offset().span(16)) }.unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

/// Compares two contents, with a readable failure.
pub(super) fn assert_same(found: &Contents, wanted: &Contents) {
    let lost: Vec<_> = wanted.iter().filter(|(key, value)| found.get(key) != Some(value)).take(5).collect();
    let foreign: Vec<_> = found.iter().filter(|(key, _)| !wanted.contains_key(key)).take(5).collect();
    assert!(lost.is_empty() && foreign.is_empty(), "lost or wrong: {lost:?}; foreign: {foreign:?}");
}
