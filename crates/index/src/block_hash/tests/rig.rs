//! A table of small items over a simulated region: a key is its signature and a number, a value another number.

use std::collections::BTreeMap;

use epoch::Limbo;
use heap::{EngineNumber, Heap, HeapError, Parameters};
use pmem::{MediumError, Persist};
use pmem_sim::{Model, Sim, SimDram};

use crate::block_hash::{At, BlockHash, Buckets, Content, Full, Key, Slot};
use crate::segmented::layout::Geometry;
use crate::segmented::{Context, Cursor, Garbage, Segmented};

/// A key: its signature, and a number that distinguishes it from others of that signature.
pub(super) type Name = (u64, u32);
pub(super) type Contents = BTreeMap<Name, u32>;
/// A key, and its new value, or `None` for its removal.
pub(super) type Change = (Name, Option<u32>);

/// Returns a well-mixed key for each number.
pub(super) fn mixed(number: u32) -> Name {
    let mixed = u64::from(number + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ mixed >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ mixed >> 32, number)
}

pub(super) fn bytes_of((signature, number): Name) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&signature.to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

pub(super) fn sign(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

pub(super) fn key(bytes: &[u8]) -> Key<'_> {
    Key { bytes, signature: sign(bytes) }
}

fn slot(name: Name, value: u32) -> Slot {
    Slot::whole(&bytes_of(name), &value.to_le_bytes()).expect("it is small")
}

/// Returns the key and value in a slot. The tests put only items that fit into slots.
fn said(slot: &Slot) -> (Name, u32) {
    let Content::Whole { key, value } = slot.content() else { return ((0, u32::MAX), 0) };
    let (number, value) = (key.last_chunk(), value.first_chunk());
    (
        (sign(key), number.map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes))),
        value.map_or(0, |bytes| u32::from_le_bytes(*bytes)),
    )
}

/// A table and everything on which it works.
pub(super) struct Rig {
    pub(super) medium: Sim,
    pub(super) heap: Heap<SimDram>,
    pub(super) table: BlockHash,
    pub(super) limbo: Limbo<Garbage>,
}

impl Rig {
    pub(super) fn new(model: Model) -> Rig {
        let medium = Sim::new(0, model);
        let parameters = Parameters { uuid: [1; 16], hash_seed: 1, partition_count: 1, region_bytes: 1 << 20 };
        let heap = Heap::format(&medium, EngineNumber::REWO_HASH, &parameters, SimDram).unwrap();
        let table = BlockHash::format(&medium, &heap, Geometry::new(1).unwrap(), Box::new(sign)).unwrap();
        heap.region().finish_format(&medium).unwrap();
        Rig { medium, heap, table, limbo: Limbo::default() }
    }

    /// Returns `None` if the region is damaged.
    pub(super) fn try_opened(medium: Sim) -> Option<Rig> {
        let (heap, limbo) = (Heap::open(&medium, EngineNumber::REWO_HASH, SimDram).ok()?, Limbo::default());
        let cx = Context { medium: &medium, heap: &heap, limbo: &limbo };
        let table = BlockHash::open(cx, Geometry::new(1).unwrap(), Box::new(sign)).ok()?;
        Some(Rig { medium, heap, table, limbo })
    }

    pub(super) fn opened(medium: Sim) -> Rig {
        Rig::try_opened(medium).expect("it is intact")
    }

    pub(super) fn cx(&self) -> Context<'_, Sim, SimDram> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    /// Returns a key's locked buckets, and its place in them. The caller is pinned.
    pub(super) fn locked(&self, name: Name) -> (Buckets<'_, Sim, SimDram>, Option<At>) {
        let buckets = self.table.lock(self.cx(), name.0);
        // In these tests, only one key has this signature if the item is not in its slot.
        let found = buckets.find(key(&bytes_of(name)), |_| Ok::<_, HeapError>(true)).unwrap();
        (buckets, found)
    }

    pub(super) fn put(&self, name: Name, value: u32) {
        while let Err(full) = self.try_put(name, value) {
            let _pin = epoch::pin();
            self.table.split(self.cx(), name.0, full).unwrap();
        }
    }

    pub(super) fn try_put(&self, name: Name, value: u32) -> Result<(), Full> {
        let _pin = epoch::pin();
        let published = match self.locked(name) {
            (buckets, Some(old)) => buckets.replace(&old, &slot(name, value)),
            (buckets, None) => buckets.insert(&slot(name, value))?,
        };
        published.settle(&self.medium).unwrap();
        Ok(())
    }

    pub(super) fn remove(&self, name: Name) {
        let _pin = epoch::pin();
        let (buckets, found) = self.locked(name);
        buckets.remove(&found.expect("it is there")).settle(&self.medium).unwrap();
    }

    /// Changes several keys as one step.
    pub(super) fn batch(&self, changes: &[Change]) {
        let _pin = epoch::pin();
        let mut signatures: Vec<_> = changes.iter().map(|((signature, _), _)| *signature).collect();
        signatures.sort_unstable();
        loop {
            let turn = self.table.batch_turn();
            let mut batch = self.table.lock_batch(self.cx(), &turn, &signatures);
            for &(name, value) in changes {
                let new = value.map(|value| slot(name, value));
                match (batch.find(key(&bytes_of(name)), |_| Ok::<_, HeapError>(true)).unwrap(), new) {
                    (Some(old), new) => batch.replace(&old, new.as_ref()),
                    (None, Some(new)) => batch.insert(name.0, &new),
                    (None, None) => {}
                }
            }
            let Err(full) = batch.has_space() else {
                let record = batch.reserve_record().unwrap();
                return self.medium.wait(batch.commit(turn, record).unwrap()).unwrap();
            };
            drop(batch);
            self.table.split_for_batch(self.cx(), full, &signatures).unwrap();
        }
    }

    /// Splits the segment of a signature, or chains one to it.
    pub(super) fn split(&self, signature: u64) {
        let _pin = epoch::pin();
        let segment = self.table.segments.of(signature).offset();
        self.table.split(self.cx(), signature, Full { segment }).unwrap();
    }

    /// Makes space in full buckets of the first segment ahead of inserts, and returns the number of moved items.
    pub(super) fn pre_evict(&self) -> u64 {
        let _pin = epoch::pin();
        self.table.pre_evict(self.cx(), Cursor::default()).0
    }

    /// Removes everything, and frees it.
    pub(super) fn clear(&self) {
        self.table.clear(self.cx()).unwrap().free(self.cx());
    }

    /// Frees retired objects, after the other tests' threads have moved on.
    pub(super) fn free_garbage(&self) {
        while !self.limbo.is_empty() {
            self.cx().collect();
        }
    }

    pub(super) fn get(&self, name: Name) -> Option<u32> {
        let _pin = epoch::pin();
        let found = self.table.find(&self.medium, key(&bytes_of(name)), |_| Ok::<_, MediumError>(false));
        found.unwrap().map(|slot| said(&slot).1)
    }

    /// Returns the contents that a walk shows.
    pub(super) fn contents(&self) -> Contents {
        let (_pin, mut cursor, mut contents) = (epoch::pin(), Cursor::default(), Contents::new());
        while !cursor.is_done() {
            let (shown, next) = self.table.visit(&self.medium, cursor).unwrap();
            shown.settle(&self.medium).unwrap();
            contents.extend(shown.slots.iter().map(|(_, slot)| said(slot)));
            cursor = next;
        }
        contents
    }

    pub(super) fn sweep(&self) {
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            cursor = self.table.sweep(self.cx(), cursor, &mut |wrong| panic!("{wrong:?}")).unwrap();
        }
        self.heap.sweep().finish(&self.medium);
    }

    /// Sweeps the first segment.
    pub(super) fn sweep_first(&self) {
        self.table.sweep(self.cx(), Cursor::default(), &mut |wrong| panic!("{wrong:?}")).unwrap();
    }

    /// Returns the damage that the table's own check reports.
    pub(super) fn damage(&self) -> Vec<&'static str> {
        let (_pin, mut cursor, mut damage) = (epoch::pin(), Cursor::default(), Vec::new());
        while !cursor.is_done() {
            let damaged = &mut |found: crate::block_hash::Damage| damage.push(found.what);
            cursor = self.table.check_segment(&self.medium, cursor, damaged, &mut |_, _| ());
        }
        damage
    }
}
