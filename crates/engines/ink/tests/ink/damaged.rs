//! Damage to the words of a key or to a value: readers get an error or the correct value.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::prelude::*;
use engine::{
    BatchOp, Clock, Condition, Cursor, Decision, Direction, Error, Expiry, Progress, Required, ScanCursor, Verify,
};
use engine_ink::{Ink, Options};
use pmem::{Bytes, Offset};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};

use crate::subject::PARAMETERS;

const KEY_COUNT: u32 = 20;

/// A store of several leaves.
const OPTIONS: Options = Options { order: 7, in_place: false };

fn key(number: u32) -> Vec<u8> {
    format!("{number:04} is a key").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("value {number:04} to be found").into_bytes()
}

fn filled(verify: Verify) -> Ink<Sim, HostDram> {
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, OPTIONS).unwrap().verifying(verify);
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &value(number)).unwrap());
    store
}

fn get(store: &Ink<Sim, HostDram>, number: u32) -> Result<Option<Vec<u8>>, Error> {
    let mut value = None;
    store.get(&key(number), &mut |_, _, found| value = Some(found.to_vec()))?;
    Ok(value)
}

fn flip(store: &Ink<Sim, HostDram>, at: u64, bits: u64) {
    let (medium, at) = (store.tree().medium(), Offset(at));
    medium.store(at, medium.load(at, Ordering::Relaxed) ^ bits, Ordering::Relaxed);
}

/// Returns the offset of these bytes.
fn place_of(store: &Ink<Sim, HostDram>, bytes: &[u8]) -> u64 {
    let medium = store.tree().medium();
    // SAFETY: the medium is alive, and no thread writes to it during the call.
    let region = unsafe { std::slice::from_raw_parts(medium.base().as_ptr(), medium.len_bytes() as usize) };
    region.windows(bytes.len()).position(|window| window == bytes).expect("they are there") as u64
}

/// Returns the offsets of a key's word and of its copies in logs: it refers to the chunk that begins 8 bytes before
/// the key.
fn key_words_of(store: &Ink<Sim, HostDram>, number: u32) -> Vec<u64> {
    let (medium, chunk) = (store.tree().medium(), place_of(store, &key(number)) - 8);
    let names_it = |at: &u64| medium.load(Offset(*at), Ordering::Relaxed) & ((1 << 48) - 1) == chunk;
    (0..medium.len_bytes()).step_by(8).filter(names_it).collect()
}

#[test]
fn absence_caused_by_damage_is_reported() {
    let words = key_words_of(&filled(Verify::Nothing), 7);
    let mut hidden = 0;
    for bit in 0..64 {
        let [careless, careful] = [Verify::Nothing, Verify::Absence].map(filled);
        for store in [&careless, &careful] {
            words.iter().for_each(|&at| flip(store, at, 1 << bit));
        }
        hidden += u32::from(matches!(get(&careless, 7), Ok(None)));
        // The size class in a word is not checked here; the key is then found.
        let is_there = matches!(get(&careful, 7), Ok(Some(found)) if found == value(7));
        assert!(is_there || get(&careful, 7).is_err() && careful.expiry(&key(7)).is_err(), "bit {bit}");
        for store in [careless, careful].into_iter().filter(|_| !is_there) {
            assert!(store.put(&key(7), b"new").is_err(), "bit {bit}: the key would be there twice");
            assert!(
                store.delete(&key(7)).is_err()
                    && store.update(&key(7), &mut |_| Decision::Put(b"new"[..].into())).is_err()
            );
            let (key, other) = (key(7), key(8));
            let absent = Condition { key: &key, required: Required::Absent };
            assert!(store.write_batch_if(&[absent], &[BatchOp::Put { key: &other, value: b"new" }]).is_err());
            assert!(store.write_batch(&[BatchOp::Put { key: &key, value: b"new" }]).is_err());
            for number in (0..KEY_COUNT).filter(|&number| number != 7) {
                assert!(get(&store, number).map_or(true, |found| found == Some(value(number))), "bit {bit}: {number}");
            }
        }
    }
    assert_eq!(hidden, 8, "each bit of what a word knows of its key's checksum");
    let whole = filled(Verify::Absence);
    assert!(get(&whole, KEY_COUNT).unwrap().is_none() && whole.put(&key(KEY_COUNT), b"new").is_ok());
}

/// A scan checks values as a get does: it ends with an error at the first damaged one, and not before.
#[test]
fn verified_scan_shows_no_damaged_value() {
    let scanned = |verify, count: usize| {
        let store = filled(verify);
        flip(&store, place_of(&store, &value(9)) & !7, 1 << 63);
        let (mut cursor, mut shown) = (ScanCursor::new(Bound::Unbounded, Direction::Forward), Vec::new());
        let mut each = |key: &[u8], _: &[u8]| {
            shown.push(key.to_vec());
            if shown.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let ended = loop {
            match store.scan(&mut cursor, &mut each) {
                Ok(true) => {}
                ended => break ended.map(drop),
            }
        };
        (shown.len(), ended.is_ok())
    };
    assert_eq!(scanned(Verify::Nothing, 100), (20, true), "what is there is shown");
    assert_eq!(scanned(Verify::Values, 9), (9, true));
    assert_eq!(scanned(Verify::Values, 10), (9, false));
}

/// A word with a wrong size class keeps the free space unknown, and prevents nothing else.
#[test]
fn reaper_survives_damage_that_ends_sweep() {
    let (probe, mut unswept) = (filled(Verify::Nothing), 0);
    let (image, words) = (probe.tree().medium().images(1, 0).remove(0), key_words_of(&probe, 7));
    for bit in 48..64 {
        let (clock, sim) = (Clock::manual(100), Sim::from_image(&image, Model::Line));
        let store = Ink::open(sim, HostDram, OPTIONS).unwrap().by_clock(clock.clone());
        words.iter().for_each(|&at| flip(&store, at, 1 << bit));
        (0..9).for_each(|number| store.put_until(&[number], b"value", Expiry::at_ms(150)).unwrap());
        clock.advance(Duration::from_millis(50));
        while store.step().unwrap() == Progress::More {}
        assert_eq!(store.stats().reaped_count, 9, "bit {bit}");
        unswept += u32::from(!store.tree().heap().is_swept());
    }
    assert!(unswept > 0);
}

/// Takes steps until nothing is left to do.
fn idle(store: &Ink<Sim, HostDram>) {
    while store.step().unwrap() == Progress::More {}
}

/// Clears a store in which this word was changed: all keys are gone, and only new values occupy space.
fn assert_cleared(image: &Image, at: u64, bit: u32, (before, behind): (bool, bool)) {
    let store = Ink::open(Sim::from_image(image, Model::Line), HostDram, OPTIONS).unwrap();
    if before {
        idle(&store);
    }
    flip(&store, at, 1 << bit);
    if behind {
        idle(&store);
    }
    let what = format!("{at:#x}, bit {bit}, swept {before}, steps {behind}");
    store.clear().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(store.len().unwrap(), 0, "{what}");
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &value(number)).unwrap());
    idle(&store);
    assert!(store.tree().heap().is_swept());
    let figures = store.tree().check(&mut |found| panic!("{what}: {}", found.what)).unwrap();
    let live_bytes = store.stats().live_bytes;
    assert!(if before { live_bytes >= figures.used_bytes } else { live_bytes == figures.used_bytes }, "{what}");
    let again = Sim::from_image(&store.tree().medium().images(1, 0).remove(0), Model::Line);
    let store = Ink::open(again, HostDram, OPTIONS).unwrap();
    (0..KEY_COUNT).for_each(|number| assert_eq!(get(&store, number).unwrap(), Some(value(number)), "{what}"));
}

/// Damages every word of meta, keys, children and values in all nodes that a descent to this key passes.
#[test]
fn damaged_store_is_cleared() {
    let probe = filled(Verify::Nothing);
    idle(&probe);
    let (medium, image) = (probe.tree().medium(), probe.tree().medium().images(1, 0).remove(0));
    let named = |at: u64| medium.load(Offset(at), Ordering::Relaxed) & ((1 << 48) - 1);
    let node_bytes = 16 * (OPTIONS.order as u64 + 1);
    let root = named(pbtree::layout::ROOT.0);
    let nodes = [root, named(root + 8), named(root + 24)];
    let words = nodes.iter().flat_map(|&node| (node..node + node_bytes).step_by(8));
    let used = words.filter(|&at| medium.load(Offset(at), Ordering::Relaxed) != 0);
    for at in used.chain([pbtree::layout::ROOT.0]) {
        for bit in [0, 5, 13, 41, 50, 57, 63] {
            for when in [(false, false), (false, true), (true, false)] {
                assert_cleared(&image, at, bit, when);
            }
        }
    }
}

/// Dumps, backups and conversions use walks, which always check values.
#[test]
fn walk_shows_no_damaged_value() {
    for verify in [Verify::Nothing, Verify::Values] {
        let store = filled(verify);
        flip(&store, place_of(&store, &value(9)) & !7, 1 << 63);
        let (mut cursor, mut shown) = (Cursor::Start, 0);
        let ended = loop {
            match store.walk(cursor, &mut |_, _, _| shown += 1) {
                Ok(Cursor::End) => break Ok(()),
                Ok(next) => cursor = next,
                Err(error) => break Err(error),
            }
        };
        assert!(matches!(ended, Err(Error::Corrupt { .. })) && shown <= 9, "{verify:?}: {shown} {ended:?}");
    }
}

/// A damaged value is not deleted.
#[test]
fn time_that_has_rotted_deletes_nothing() {
    let (clock, expiry) = (Clock::manual(100), 0x5151_5151_5151);
    let store = Ink::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS, OPTIONS).unwrap().by_clock(clock.clone());
    store.put_until(b"key", b"value", Expiry::at_ms(expiry)).unwrap();
    store.put_until(b"other", b"value", Expiry::at_ms(150)).unwrap();
    flip(&store, place_of(&store, &expiry.to_le_bytes()), expiry ^ 101);
    clock.advance(Duration::from_millis(100));
    while store.step().unwrap() == Progress::More || store.stats().reaped_count == 0 {}
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (1, 1));
}

/// A damaged child word whose check fits by chance, as one in 256 does, refers to an arbitrary place.
#[test]
fn wrong_child_word_is_reported() {
    let probe = filled(Verify::Nothing);
    let (medium, image) = (probe.tree().medium(), probe.tree().medium().images(1, 0).remove(0));
    let word = |at: u64| medium.load(Offset(at), Ordering::Relaxed);
    let class = word(pbtree::layout::ROOT.0) >> 48 & 0xFF;
    let region_bytes = medium.len_bytes();
    let mut reached = 0;
    for place in [0, 8, region_bytes - 64, region_bytes, region_bytes + 64, (1 << 40) - 64, 1 << 40, (1 << 48) - 64, 68]
    {
        for check in 0..256u64 {
            let store = Ink::open(Sim::from_image(&image, Model::Line), HostDram, OPTIONS).unwrap();
            let root = word(pbtree::layout::ROOT.0) & ((1 << 48) - 1);
            for child in [root + 8, root + 24] {
                flip(&store, child, word(child) ^ (place | class << 48 | check << 56));
            }
            let reported = get(&store, 0).unwrap_err().to_string();
            reached += u32::from(!reported.contains("a pointer's check does not fit"));
            (0..KEY_COUNT)
                .for_each(|number| _ = get(&store, number).is_ok() || store.put(&key(number), b"new").is_ok());
            assert!(store.len().is_err() && store.walk(Cursor::Start, &mut |_, _, _| ()).is_err(), "{place:#x}");
            while store.step().is_ok_and(|progress| progress == Progress::More) {}
            let mut reported = 0;
            store.tree().check(&mut |_| reported += 1).unwrap();
            store.clear().unwrap();
            assert!(reported > 0 && store.put(&key(0), b"new").is_ok());
        }
    }
    assert_eq!(reached, 9, "one check of 256 fits");
}
