//! Values hold a tag of their keys: in stores with tags, a value that a lost page gives to another key is detected.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use engine::prelude::*;
use engine::{BatchOp, Check, Cursor, Decision, Depth, Direction, Error, ScanCursor};
use engine_ink::{Ink, Options};
use heap::FEATURE_TAGGED_VALUES;
use heap::layout::SUPERBLOCK_COPIES;
use pmem::{Bytes, Checksum, Offset, Persist};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::subject::PARAMETERS;

type Store = Ink<Sim, HostDram>;

const KEY_COUNT: u32 = 40;
const OPTIONS: Options = Options { order: 7, in_place: false };
/// In a superblock: the word that contains the features, and the words before its checksum.
const FEATURES_WORD: u64 = 6;
const CHECKED_WORD_COUNT: u64 = 9;

fn key(number: u32) -> Vec<u8> {
    format!("{number:04} is a key").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("value {number:04} to be found").into_bytes()
}

/// Removes the flag of tagged values.
fn make_older(sim: &Sim) {
    for copy in SUPERBLOCK_COPIES {
        let word = |number: u64| copy.plus(8 * number);
        let load = |number: u64| sim.load(word(number), Ordering::Acquire);
        let features = load(FEATURES_WORD) & !(u64::from(FEATURE_TAGGED_VALUES) << 32);
        sim.store(word(FEATURES_WORD), features, Ordering::Release);
        let bytes: Vec<u8> = (0..CHECKED_WORD_COUNT).flat_map(|number| load(number).to_le_bytes()).collect();
        sim.store(word(CHECKED_WORD_COUNT), Checksum::default().update(&bytes).value().into(), Ordering::Release);
        sim.flush(copy.span(128));
        sim.order();
    }
}

/// Creates an empty store as this release does, or as releases before format 1.3 did.
fn empty(has_tags: bool) -> Store {
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, OPTIONS).unwrap();
    if has_tags {
        return store;
    }
    let sim = store.tree().medium().clone();
    drop(store);
    make_older(&sim);
    Ink::open(sim, HostDram, OPTIONS).unwrap()
}

fn filled(has_tags: bool) -> Store {
    let store = empty(has_tags);
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &value(number)).unwrap());
    store
}

fn get(store: &Store, number: u32) -> Result<Option<Vec<u8>>, Error> {
    let mut value = None;
    store.get(&key(number), &mut |_, _, found| value = Some(found.to_vec()))?;
    Ok(value)
}

/// Returns the offset of a value's word: its chunk begins 24 bytes before the value.
fn word_of(store: &Store, number: u32) -> Offset {
    let medium = store.tree().medium();
    // SAFETY: the medium is alive, and no thread writes to it during the call.
    let region = unsafe { std::slice::from_raw_parts(medium.base().as_ptr(), medium.len_bytes() as usize) };
    let wanted = value(number);
    let chunk = region.windows(wanted.len()).position(|window| window == wanted).expect("it is there") as u64 - 24;
    let names_it = |at: &u64| {
        let word = medium.load(Offset(*at), Ordering::Relaxed);
        // A log also holds the words that its last run replaced: the leaf's word is behind it.
        word & ((1 << 48) - 1) == chunk && word >> 48 != 0
    };
    Offset((0..medium.len_bytes()).step_by(8).filter(names_it).last().expect("a leaf names it"))
}

/// Gives the first key the second one's value, as a stale page of a leaf would.
fn give(store: &Store, first: u32, second: u32) {
    let (medium, from) = (store.tree().medium(), word_of(store, second));
    medium.store(word_of(store, first), medium.load(from, Ordering::Relaxed), Ordering::Relaxed);
}

fn walk(store: &Store) -> Result<(), Error> {
    let mut cursor = Cursor::default();
    while !cursor.is_done() {
        cursor = store.walk(cursor, &mut |_, _, _| {})?;
    }
    Ok(())
}

fn damage(store: &Store) -> Vec<String> {
    let (mut check, mut damage) = (Check::new(Depth::Deep), Vec::new());
    while !check.is_done() {
        store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
    }
    damage
}

#[test]
fn value_of_other_key_is_detected() {
    let store = filled(true);
    assert_eq!(damage(&store), [""; 0]);
    give(&store, 7, 23);
    let is_reported = |answer: Result<(), Error>| matches!(answer, Err(Error::Corrupt { .. }));
    assert!(is_reported(get(&store, 7).map(drop)) && is_reported(store.put(&key(7), b"new")));
    assert!(is_reported(store.delete(&key(7)).map(drop)));
    assert!(is_reported(store.update(&key(7), &mut |_| Decision::Put(b"new"[..].into())).map(drop)));
    assert!(is_reported(store.multi_get(&[&key(6), &key(7)], &mut |_, _| {})));
    let mut cursor = ScanCursor::new(Bound::Unbounded, Direction::Forward);
    let scanned = loop {
        match store.scan(&mut cursor, &mut |_, _| ControlFlow::Continue(())) {
            Ok(true) => {}
            ended => break ended.map(drop),
        }
    };
    assert!(is_reported(scanned) && is_reported(walk(&store)));
    assert!(damage(&store).iter().any(|what| what.contains("another key")), "{:?}", damage(&store));
    let mut whole_count = 0;
    store.walk_skipping_damage(Cursor::Start, &mut |_, _, _| whole_count += 1, &mut |_| Ok(())).unwrap();
    assert_eq!(whole_count, KEY_COUNT - 1);
    for number in (0..KEY_COUNT).filter(|&number| number != 7) {
        assert_eq!(get(&store, number).unwrap(), Some(value(number)));
    }
}

/// A page written to the wrong place: the chunk of an older value of the same key, in the place of the newer one.
#[test]
fn older_value_at_other_place_is_detected() {
    let store = filled(true);
    let medium = store.tree().medium();
    let chunk = |at: Offset| Offset(medium.load(at, Ordering::Relaxed) & ((1 << 48) - 1));
    let word = word_of(&store, 6);
    let older = chunk(word);
    store.put(&key(6), b"a newer value of the key").unwrap();
    let newer = chunk(word);
    assert_ne!(older, newer);
    // SAFETY: the medium is alive, and only this thread uses it.
    let copy = unsafe { medium.bytes(older.span(48)) }.unwrap().to_vec();
    // SAFETY: as above.
    unsafe { medium.write(newer, &copy) };
    assert!(matches!(get(&store, 6), Err(Error::Corrupt { .. })));
}

#[test]
fn store_without_tags_uses_old_rule() {
    let store = filled(false);
    store.write_batch(&[BatchOp::Put { key: &key(3), value: &value(3) }, BatchOp::Delete { key: &key(4) }]).unwrap();
    let sim = store.tree().medium().clone();
    drop(store);
    let store = Ink::open(sim, HostDram, OPTIONS).unwrap();
    assert!(!store.tree().heap().region().has_features(FEATURE_TAGGED_VALUES), "opening changes no format");
    for number in (0..KEY_COUNT).filter(|&number| number != 4) {
        assert_eq!(get(&store, number).unwrap(), Some(value(number)));
    }
    assert_eq!(damage(&store), [""; 0]);
    give(&store, 7, 23);
    assert_eq!(get(&store, 7).unwrap(), Some(value(23)), "what such stores cannot tell");
}
