//! A reader that begins after any store of a batch, including those to words in DRAM, and pauses in the middle of
//! its lookup until the batch has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use heap::{Place, PlaceKind};
use pmem::{MediumError, Offset};
use pmem_sim::Model;

use super::rig::{Rig, bytes_of, key};
use crate::Position;
use crate::block_hash::Slot;
use word::model::chosen::stepping;

const NAME: (u64, u32) = (0x1234_5678_9ABC_DEF0, 1);
const OLD: &[u8] = b"a longer one";
const NEW: &[u8] = b"b";

/// Returns the key behind an item of its signature; each reader checks the item first.
fn rig() -> Rig {
    let (rig, _pin) = (Rig::new(Model::Line), epoch::pin());
    let place = Place { offset: Offset(1 << 16), kind: PlaceKind::Extent };
    let item = Slot::of_item(NAME.0, Position::of(place));
    // In both buckets, so that the key has such an item before it in either.
    for slot in [item, item, Slot::whole(&bytes_of(NAME), OLD).unwrap()] {
        let published = rig.table.lock(rig.cx(), NAME.0).insert(&slot).expect("there is space");
        published.settle(&rig.medium).unwrap();
    }
    rig
}

fn write_batch(rig: &Rig) {
    let _pin = epoch::pin();
    let turn = rig.table.batch_turn();
    let mut batch = rig.table.lock_batch(rig.cx(), &turn, &[NAME.0]);
    let found = batch.find(key(&bytes_of(NAME)), |_| Ok::<_, MediumError>(false)).unwrap().expect("it is there");
    batch.replace(&found, Some(&Slot::whole(&bytes_of(NAME), NEW).unwrap()));
    let record = batch.reserve_record().unwrap();
    _ = batch.commit(turn, record);
}

fn find(rig: &Rig, mut asked: impl FnMut()) -> Option<Slot> {
    let _pin = epoch::pin();
    let is_key = |_| {
        asked();
        Ok::<_, MediumError>(false)
    };
    rig.table.find(&rig.medium, key(&bytes_of(NAME)), is_key).unwrap()
}

/// Returns the slot found by a reader that begins after step `count` of a batch and ends after the batch, or `None`
/// if the batch has fewer steps.
fn found_after(count: usize) -> Option<Slot> {
    let rig = Arc::new(rig());
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
            found.send(find(&theirs, stand)).unwrap();
        });
        is_asking.recv().unwrap();
    };
    stepping(step, || write_batch(&rig));
    if !has_begun.load(Ordering::Relaxed) {
        return None;
    }
    go.send(()).unwrap();
    Some(is_found.recv().unwrap().expect("the key was there all the time"))
}

#[test]
fn reader_outliving_batch_sees_slot_atomically() {
    let all: Vec<_> = (0..).map_while(found_after).collect();
    let either = [OLD, NEW].map(|value| Slot::whole(&bytes_of(NAME), value).unwrap());
    let torn: Vec<_> = all.iter().enumerate().filter(|(_, slot)| !either.contains(slot)).collect();
    assert!(all.len() > 2 && torn.is_empty(), "{torn:?} of {}", all.len());
}
