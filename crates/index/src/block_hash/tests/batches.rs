//! A reader that begins after any store of a batch, those to volatile words included, and stands in the middle of its look until
//! the batch has ended.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use epoch::Limbo;
use heap::{EngineNumber, Heap, Parameters, Place, PlaceKind};
use pmem::{Dram, MediumError, Offset};
use pmem_sim::{Model, Sim};

use crate::Position;
use crate::block_hash::{BlockHash, Key, Slot};
use crate::segmented::Context;
use crate::segmented::layout::Geometry;
use crate::shared::stand_in::stepping;

const SIGNATURE: u64 = 0x1234_5678_9ABC_DEF0;
const OLD: &[u8] = b"a longer one";
const NEW: &[u8] = b"b";

#[derive(Clone, Copy, Debug)]
struct Host;

// SAFETY: the global allocator's promises.
unsafe impl Dram for Host {
    fn lend(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the heap asks for no layout of size 0.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn give_back(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}

struct Rig {
    medium: Sim,
    heap: Heap<Host>,
    table: BlockHash,
    limbo: Limbo<crate::segmented::Garbage>,
}

const KEY: Key<'_> = Key { bytes: b"a key", signature: SIGNATURE };

fn is_key(_: Position) -> Result<bool, MediumError> {
    Ok(false)
}

impl Rig {
    /// The key, behind an item of its signature, of which each reader asks.
    fn new() -> Rig {
        let medium = Sim::new(0, Model::Line);
        let parameters = Parameters { uuid: [1; 16], hash_seed: 1, partition_count: 1, region_bytes: 1 << 20 };
        let heap = Heap::format(&medium, EngineNumber::REWO_HASH, &parameters, Host).unwrap();
        let table = BlockHash::format(&medium, &heap, Geometry::new(1).unwrap(), Box::new(|_| SIGNATURE)).unwrap();
        heap.finish_format(&medium).unwrap();
        let rig = Rig { medium, heap, table, limbo: Limbo::default() };
        let place = Place { offset: Offset(1 << 16), kind: PlaceKind::Extent };
        // Both buckets, so that whichever is the key's has one before it.
        (0..2).for_each(|_| rig.insert(&Slot::of_item(SIGNATURE, Position::of(place))));
        rig.insert(&Slot::whole(KEY.bytes, OLD).unwrap());
        rig
    }

    fn cx(&self) -> Context<'_, Sim, Host> {
        Context { medium: &self.medium, heap: &self.heap, limbo: &self.limbo }
    }

    fn insert(&self, slot: &Slot) {
        let _pin = epoch::pin();
        let published = self.table.lock(self.cx(), SIGNATURE).insert(slot).expect("there is room");
        published.settle(&self.medium).unwrap();
    }

    fn write_batch(&self, value: &[u8]) {
        let _pin = epoch::pin();
        let turn = self.table.batch_turn();
        let mut batch = self.table.lock_batch(self.cx(), &turn, &[SIGNATURE]);
        let found = batch.find(KEY, is_key).unwrap().expect("it is there");
        batch.replace(&found, Some(&Slot::whole(KEY.bytes, value).unwrap()));
        let record = batch.reserve_record().unwrap();
        _ = batch.commit(record);
    }

    fn find(&self, mut asked: impl FnMut()) -> Option<Slot> {
        let _pin = epoch::pin();
        let is_key = |_| {
            asked();
            Ok::<_, MediumError>(false)
        };
        self.table.find(&self.medium, KEY, is_key).unwrap()
    }
}

/// What a reader finds that begins after step `count` of a batch, and ends after it; `None` if it has not so many.
fn found_after(count: usize) -> Option<Slot> {
    let rig = Arc::new(Rig::new());
    let ((found, is_found), (go, may_go)) = (channel(), channel());
    let (theirs, has_begun) = (Arc::clone(&rig), Arc::new(AtomicBool::new(false)));
    let (noted, mut left, mut may_go) = (Arc::clone(&has_begun), count, Some(may_go));
    let step = move || {
        if left > 0 {
            left -= 1;
            return;
        }
        let Some(may_go) = may_go.take() else { return };
        noted.store(true, Ordering::Relaxed);
        let ((asks, is_asking), theirs, found) = (channel(), Arc::clone(&theirs), found.clone());
        thread::spawn(move || {
            let mut may_go = Some(may_go);
            let stand = || {
                if let Some(may_go) = may_go.take() {
                    asks.send(()).unwrap();
                    may_go.recv().unwrap();
                }
            };
            found.send(theirs.find(stand)).unwrap();
        });
        is_asking.recv().unwrap();
    };
    stepping(step, || rig.write_batch(NEW));
    if !has_begun.load(Ordering::Relaxed) {
        return None;
    }
    go.send(()).unwrap();
    Some(is_found.recv().unwrap().expect("the key was there all the time"))
}

#[test]
fn a_reader_that_outlives_a_batch_sees_all_or_nothing_of_a_slot() {
    let all: Vec<_> = (0..).map_while(found_after).collect();
    let either = [OLD, NEW].map(|value| Slot::whole(KEY.bytes, value).unwrap());
    let torn: Vec<_> = all.iter().enumerate().filter(|(_, slot)| !either.contains(slot)).collect();
    assert!(all.len() > 2 && torn.is_empty(), "{torn:?} of {}", all.len());
}
