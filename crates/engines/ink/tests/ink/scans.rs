//! Scans of values of every kind, interrupted and resumed; and of damaged keys.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use engine::prelude::*;
use engine::{Clock, Direction, Error, Expiry, ScanCursor, Verify};
use engine_ink::{Ink, Options};
use pmem::{Bytes, Offset};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::subject::PARAMETERS;

const KEY_COUNT: u32 = 40;
const NOW_MS: u64 = 1000;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Several leaves with values in slots, one in an extent, empty values, and values that expire, some of them expired.
fn filled() -> (Ink<Sim, HostDram>, Map) {
    let options = Options { order: 7, in_place: false };
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, options).unwrap();
    let store = store.by_clock(Clock::manual(NOW_MS)).verifying(Verify::Values);
    let mut map = Map::new();
    for number in 0..KEY_COUNT {
        let key = [&b"key "[..], &number.to_be_bytes(), &vec![b'k'; number as usize * 9]].concat();
        let value = vec![number as u8; [0, 7, 256, 4000][number as usize % 4]];
        let expiry = [Expiry::NEVER, Expiry::at_ms(NOW_MS), Expiry::at_ms(NOW_MS + 1)][number as usize % 3];
        store.put_until(&key, &value, expiry).unwrap();
        if expiry != Expiry::at_ms(NOW_MS) {
            map.insert(key, value);
        }
    }
    let long = vec![9; 300_000];
    store.put(b"long", &long).unwrap();
    map.insert(b"long".to_vec(), long);
    (store, map)
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// Returns all items, through a cursor whose visitor stops repeatedly after this many items.
fn by(store: &Ink<Sim, HostDram>, direction: Direction, count: usize) -> Result<Vec<Pair>, Error> {
    let (mut cursor, mut items) = (ScanCursor::new(Bound::Unbounded, direction), Vec::new());
    loop {
        let mut missing = count;
        let mut each = |key: &[u8], value: &[u8]| {
            items.push((key.to_vec(), value.to_vec()));
            missing -= 1;
            if missing > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        while store.scan(&mut cursor, &mut each)? {}
        if missing > 0 {
            return Ok(items);
        }
    }
}

#[test]
fn ended_scan_continues_after_last_item() {
    let (store, map) = filled();
    let upwards: Vec<_> = map.into_iter().collect();
    let downwards: Vec<_> = upwards.iter().rev().cloned().collect();
    for count in 1..10 {
        assert!(by(&store, Direction::Forward, count).unwrap() == upwards, "by {count}");
        assert!(by(&store, Direction::Backward, count).unwrap() == downwards, "by {count}, backward");
    }
}

/// A visitor that deletes the shown keys, merges leaves, and puts keys around them: every initial key is shown once,
/// in order.
#[test]
fn visitor_may_change_visited_leaves() {
    for direction in [Direction::Forward, Direction::Backward] {
        let options = Options { order: 7, in_place: false };
        let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, options).unwrap();
        let key = |i: u32, rest: &[u8]| [&i.to_be_bytes()[..], rest].concat();
        (0..500).for_each(|i| store.put(&key(i, b""), b"value").unwrap());
        let (mut cursor, mut shown, mut last) = (ScanCursor::new(Bound::Unbounded, direction), Vec::new(), None);
        let mut each = |found: &[u8], _: &[u8]| {
            let is_next =
                |last: &Vec<u8>| if direction == Direction::Forward { &last[..] < found } else { &last[..] > found };
            assert!(last.as_ref().is_none_or(is_next), "{found:?} after {last:?}");
            last = Some(found.to_vec());
            if let Ok(number) = found.try_into() {
                let i = u32::from_be_bytes(number);
                shown.push(i);
                store.delete(found).unwrap();
                let near = i.saturating_sub(5)..500.min(i + 5);
                near.filter(|near| near % 3 == i % 3)
                    .for_each(|near| store.put(&key(near, &found[2..]), b"new").unwrap());
                store.step().unwrap();
            }
            ControlFlow::Continue(())
        };
        while store.scan(&mut cursor, &mut each).unwrap() {}
        shown.sort_unstable();
        assert!(shown.iter().copied().eq(0..500), "{direction:?}: {shown:?}");
    }
}

#[test]
fn scan_ends_with_error_at_damaged_key() {
    let (store, map) = filled();
    let medium = store.tree().medium();
    // SAFETY: the medium is alive, and no thread writes to it during the call.
    let region = unsafe { std::slice::from_raw_parts(medium.base().as_ptr(), medium.len_bytes() as usize) };
    let at = |bytes: &[u8]| region.windows(bytes.len()).position(|window| window == bytes).expect("it is there") as u64;
    let wanted = map.len();
    for key in map.keys() {
        let word = Offset(at(key) & !7);
        let whole = medium.load(word, Ordering::Relaxed);
        for bit in [0, 13, 31] {
            medium.store(word, whole ^ 1 << bit, Ordering::Relaxed);
            assert!(by(&store, Direction::Forward, wanted).is_err(), "bit {bit} of {key:?}");
        }
        medium.store(word, whole, Ordering::Relaxed);
    }
    assert_eq!(by(&store, Direction::Forward, wanted + 1).unwrap().len(), wanted);
}
