//! Misleading regions for a salvage.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use heap::layout::{SEGMENT_BYTES, UNIT_BYTES};
use index::partitioned_hash::layout::PREFIX_BYTES;
use index::partitioned_hash::salvage::{SplitStates, Standing};
use pmem::{Bytes, Offset};
use pmem_sim::Sim;

use super::super::salvage::{Finding, Sink, Taken, salvage};
use super::rig::{Contents, Rig};
use engine::prelude::*;
use engine::{Error, Expiry};
use items::layout::HEADER_BYTES;

/// Keeps the first item of each key, as the rules require.
#[derive(Default)]
struct Kept(Contents);

impl Sink for Kept {
    fn take(&mut self, key: &[u8], value: &[u8], _: Expiry) -> Result<Taken, Error> {
        Ok(match self.0.get(key) {
            Some(before) if before == value => Taken::Same,
            Some(_) => Taken::Other,
            None => {
                self.0.insert(key.to_vec(), value.to_vec());
                Taken::New
            }
        })
    }

    fn found(&mut self, _: Finding) {}

    fn progress(&mut self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The store's segment: with few keys there is only one.
fn only_segment(sim: &Sim) -> Offset {
    let mut places = (UNIT_BYTES..sim.len_bytes()).step_by(SEGMENT_BYTES as usize).map(Offset);
    let is_live = |at: &Offset| matches!(SplitStates::default().standing(sim, *at), Standing::Live(_));
    places.find(is_live).expect("a store has segments")
}

fn bytes_at(sim: &Sim, at: Offset, len_bytes: u64) -> Vec<u8> {
    (0..len_bytes).step_by(8).flat_map(|i| sim.load(at.plus(i), Ordering::Relaxed).to_le_bytes()).collect()
}

/// The offset of the value of this one-byte key.
fn value_at(rig: &Rig, key: &[u8; 1]) -> u64 {
    rig.position(key).offset().0 + HEADER_BYTES as u64 + 1
}

/// As in a store that keeps copies of its own file: the value holds an old segment, at a place where segments can be.
#[test]
fn value_holding_old_segment_revives_nothing() {
    const VALUE_BYTES: u64 = 4 * SEGMENT_BYTES;
    let rig = Rig::new();
    rig.put(b"gone", b"old");
    rig.put(b"kept", b"old");
    let segment = only_segment(rig.sim());
    let copy = bytes_at(rig.sim(), segment, SEGMENT_BYTES);
    // Slots of one class follow one another: the first two give the place of the third value.
    let value = vec![0; VALUE_BYTES as usize];
    rig.put(b"a", &value);
    rig.put(b"b", &value);
    let start = 2 * value_at(&rig, b"b") - value_at(&rig, b"a");
    let aligned = start.next_multiple_of(SEGMENT_BYTES);
    let mut value = value;
    value[(aligned - start) as usize..][..SEGMENT_BYTES as usize].copy_from_slice(&copy);
    rig.put(b"c", &value);
    assert!(matches!(SplitStates::default().standing(rig.sim(), Offset(aligned)), Standing::Live(_)));
    assert!(rig.store.delete(b"gone").unwrap());
    rig.put(b"kept", b"new");
    let header = segment.plus(PREFIX_BYTES);
    let word = rig.sim().load(header, Ordering::Relaxed);
    rig.sim().store(header, word ^ 1 << 5, Ordering::Relaxed);
    let mut kept = Kept::default();
    salvage(rig.sim(), true, &mut kept).unwrap();
    assert_eq!(kept.0.get(&b"kept"[..]).map(Vec::as_slice), Some(&b"new"[..]));
    assert!(!kept.0.contains_key(&b"gone"[..]), "a deleted key is there again");
}
