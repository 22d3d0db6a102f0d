//! A flipped bit in data that an opening reads is reported, and never changes the contents of the store.

use std::mem;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Condition, Cursor, Decision, Depth, Direction, Error, Expiry, Progress, Required,
    ScanCursor, Verify,
};
use engine_pmekv::layout::{self, NODE_BYTES, RECORD_BYTES, SEGMENT_BYTES};
use engine_pmekv::{Options, Pmekv};
use heap::layout::SUPERBLOCK_COPIES;
use pmem::{Bytes, LINE_BYTES, Offset, Span, unseal};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};

use crate::subject::{OPTIONS, OnSim, PARAMETERS};

/// Returns a store with a checkpoint and, in each lane, entries after it.
fn made() -> (Image, Vec<Span>) {
    let sim = Sim::new(0, Model::Line);
    let roomy = Options { log_entry_count_max: 100, ..OPTIONS };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, roomy).unwrap();
    (0..8u8).for_each(|i| store.put(&[i], &[i; 40]).unwrap());
    store.checkpoint().unwrap();
    (4..12u8).for_each(|i| store.put(&[i], &[i; 50]).unwrap());
    let word = |at: Offset| unseal(sim.load(at, Ordering::Acquire)).unwrap();
    let record = layout::record(word(layout::ROOT));
    let node = Offset(sim.load(record.plus(8), Ordering::Acquire));
    let lanes = (0..2).map(layout::lane_word);
    let headers = lanes.clone().map(|lane| Offset(word(lane)).span(LINE_BYTES));
    let words = lanes.chain([layout::ROOT, layout::OPENING]).map(|at| at.span(8));
    let node_keys = node.span(layout::NODE_HEADER_BYTES as u64 + 8 * layout::NODE_KEY_BYTES as u64);
    let read = words.chain(headers).chain([record.span(RECORD_BYTES as u64), node_keys]).collect();
    assert!(node_keys.len_bytes < NODE_BYTES && SUPERBLOCK_COPIES[1] < layout::ROOT);
    (sim.images(1, 0).remove(0), read)
}

fn open(image: &Image, flipped: Option<(Offset, u32)>) -> Result<(), String> {
    let sim = Sim::from_image(image, Model::Line);
    if let Some((at, bit)) = flipped {
        sim.store(at, sim.load(at, Ordering::Acquire) ^ 1 << bit, Ordering::Release);
    }
    Pmekv::open(sim, HostDram, OPTIONS).map(drop).map_err(|error| error.to_string())
}

#[test]
fn bit_flips_everywhere_are_reported() {
    let (image, read) = made();
    assert_eq!(open(&image, None), Ok(()));
    for span in read {
        for at in (span.start.0..span.start.0 + span.len_bytes).step_by(8) {
            for bit in (0..64).step_by(5) {
                let opened = open(&image, Some((Offset(at), bit)));
                assert!(opened.as_ref().is_err_and(|error| error.contains("damaged")), "{at:#x} {bit}: {opened:?}");
            }
        }
    }
}

/// Of the entries after the checkpoint, only each lane's last may be mistaken for an unfinished write.
#[test]
fn entry_bit_flips_reported_except_lane_ends() {
    let (image, read) = made();
    let mut unreported = 0;
    let segments = read.iter().filter(|span| span.len_bytes == LINE_BYTES);
    for segment in segments {
        for number in 1..4 {
            let at = segment.start.plus(number * LINE_BYTES);
            assert!(number * LINE_BYTES < SEGMENT_BYTES);
            let is_empty = image.line(at) == [0; 8];
            unreported += u32::from(!is_empty && open(&image, Some((at.plus(16), 3))).is_ok());
        }
    }
    assert!(unreported <= 2, "{unreported} damaged entries were not reported");
}

#[test]
fn damaged_value_is_found_by_deep_check() {
    let sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
    store.put(b"key", b"a value to be found by its bytes").unwrap();
    let found = |depth| {
        let (mut check, mut damage) = (Check::new(depth), Vec::new());
        store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
        assert!(check.is_done() && check.item_count() == 1);
        damage
    };
    assert_eq!(found(Depth::Deep), Vec::<String>::new());
    let at = value_word(&sim);
    sim.store(Offset(at), !sim.load(Offset(at), Ordering::Acquire), Ordering::Release);
    assert_eq!(found(Depth::Quick), Vec::<String>::new());
    assert_eq!(found(Depth::Deep), ["a record's checksum does not fit"]);
    // An item made from the damaged one would have a valid checksum.
    assert!(
        store.get(b"key", &mut |_, _, _| {}).unwrap() && store.expire(b"key", Expiry::at_ms(u64::MAX - 1)).is_err()
    );
    assert_eq!(found(Depth::Deep), ["a record's checksum does not fit"]);
}

/// A record in a leaf whose key is below the leaf's start was visited in a leaf that was merged, or its key is damaged.
#[test]
fn damaged_key_is_not_in_earlier_leaf() {
    for number in [44, 50, 79] {
        let sim = Sim::new(0, Model::Line);
        let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
        (0..80).for_each(|number| store.put(&key(number), &[7; 20]).unwrap());
        let at = record_of(&sim, &key(number)).plus(16);
        sim.store(at, 0, Ordering::Release);
        let (mut check, mut damage) = (Check::new(Depth::Quick), Vec::new());
        store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
        assert_eq!((check.item_count(), damage), (80, vec!["a record's checksum does not fit".to_owned()]), "{number}");
    }
}

/// Returns the offset of a word of the value: after the header of 16 bytes and three bytes of the key.
fn value_word(sim: &Sim) -> u64 {
    let key = u64::from_le_bytes(*b"keya val");
    let words = (0..sim.len_bytes()).step_by(8);
    words.into_iter().find(|&at| sim.load(Offset(at), Ordering::Acquire) == key).expect("the record is there") + 8
}

/// Returns keys of which eight each share their first bytes: more than the tree's leaf stores of each.
fn key(number: u32) -> Vec<u8> {
    format!("{:04} and some more: {:04}", number / 8, number % 8).into_bytes()
}

/// Returns the offset of the record of a key that does not expire.
fn record_of(sim: &Sim, key: &[u8]) -> Offset {
    let word = |at: u64| sim.load(Offset(at), Ordering::Acquire).to_le_bytes();
    let has_key = |at: &u64| (0..3).all(|part| word(at + 8 * part)[..] == key[8 * part as usize..][..8]);
    Offset((0..sim.len_bytes()).step_by(8).find(has_key).expect("the record is there") - 16)
}

/// Makes the header of the key's record, with or without an expiry, record a value that is too long for its slot.
fn break_header(sim: &Sim, key: &[u8], before_key_bytes: u64) {
    let at = Offset(record_of(sim, key).0 + 16 - before_key_bytes);
    sim.store(at, sim.load(at, Ordering::Acquire) | 1 << 31, Ordering::Release);
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

/// Only a key whose record cannot be read stays, and keys whose position in a leaf depends on its bytes.
#[test]
fn reaper_continues_past_damaged_keys() {
    let (clock, sim) = (Clock::manual(100), Sim::new(0, Model::Line));
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap().by_clock(clock.clone());
    let early = |number: &u32| number % 16 >= 8;
    let expiry = |number: u32| Expiry::at_ms(if early(&number) { 150 } else { 200 });
    (0..480).for_each(|number| store.put_until(&key(number), &[7; 20], expiry(number)).unwrap());
    // Also during a walk: after its position, at it, and before it.
    store.step().unwrap();
    let broken = [8, 11, 17, 18, 240, 479];
    broken.iter().for_each(|&number| break_header(&sim, &key(number), 24));
    let reaped_by = |ms: u64| {
        clock.advance(Duration::from_millis(ms));
        // The running walk, and one that begins after it.
        (0..100).for_each(|_| drop(store.step()));
        store.stats().reaped_count
    };
    assert!((240 - 16..=240 - 3).contains(&reaped_by(50)));
    assert!((480 - 32..=480 - 6).contains(&reaped_by(50)), "{}", store.stats().reaped_count);
    assert!(store.get(&key(240), &mut |_, _, _| {}).is_err_and(|error| is_damage(&error)));
}

/// If a checkpoint cannot name a record, the log grows, and the metrics show it until the record is removed.
#[test]
fn damaged_records_blocking_checkpoint_are_reported() {
    let sim = Sim::new(0, Model::Line);
    let roomy = Options { log_entry_count_max: 100, ..OPTIONS };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, roomy).unwrap();
    let figure = |name| store.stats().figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    let reported = || [figure("pmekv_damaged_records"), figure("pmekv_checkpoints")];
    (0..40).for_each(|number| store.put(&key(number), &[7; 20]).unwrap());
    store.checkpoint().unwrap();
    [8, 11, 17].iter().for_each(|&number| break_header(&sim, &key(number), 16));
    assert_eq!(reported(), [Some(0.0), Some(2.0)]);
    (100..200).for_each(|number| store.put(&key(number), &[7; 20]).unwrap());
    assert!(store.checkpoint().is_err_and(|error| is_damage(&error)));
    assert_eq!(reported(), [Some(3.0), Some(2.0)]);
    assert_eq!(figure("pmekv_log_entries"), Some(100.0));
    store.clear().unwrap();
    assert_eq!(reported(), [Some(0.0), Some(3.0)]);
}

/// A damaged expiry does not delete the key.
#[test]
fn time_that_has_rotted_deletes_nothing() {
    let (clock, sim) = (Clock::manual(100), Sim::new(0, Model::Line));
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap().by_clock(clock.clone());
    let expiry = 0x5151_5151_5151;
    store.put_until(b"key", b"value", Expiry::at_ms(expiry)).unwrap();
    store.put_until(b"other", b"value", Expiry::at_ms(150)).unwrap();
    let words = (0..sim.len_bytes()).step_by(8);
    let at =
        words.into_iter().find(|&at| sim.load(Offset(at), Ordering::Acquire) == expiry).expect("the record is there");
    sim.store(Offset(at), 101, Ordering::Release);
    clock.advance(Duration::from_millis(100));
    while store.step().unwrap() != Progress::Idle && store.stats().reaped_count == 0 {}
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (1, 1));
}

fn made_with_one_broken(sim: &Sim) -> OnSim {
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
    (0..80).for_each(|number| store.put(&key(number), &[7; 20]).unwrap());
    break_header(sim, &key(44), 16);
    store
}

/// A checkpoint cannot name a record that cannot be read. The log continues without checkpoints, and expired keys are
/// reaped.
#[test]
fn writes_continue_next_to_damaged_record() {
    let (clock, sim) = (Clock::manual(100), Sim::new(0, Model::Line));
    let store = made_with_one_broken(&sim).by_clock(clock.clone());
    for number in 100..200 {
        store.put_until(&key(number), &[8; 20], Expiry::at_ms(150)).unwrap();
        assert!(store.delete(&key(number % 40)).is_ok());
    }
    assert!(store.checkpoint().is_err_and(|error| is_damage(&error)));
    clock.advance(Duration::from_millis(50));
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.stats().reaped_count, 100);
}

#[test]
fn damaged_record_is_found_and_cleared() {
    let sim = Sim::new(0, Model::Line);
    let store = made_with_one_broken(&sim);
    let (mut check, mut damage) = (Check::new(Depth::Quick), Vec::new());
    store.check(&mut check, &mut |found| damage.push(found.what)).unwrap();
    assert_eq!((check.item_count(), &damage[..]), (80, &["an item's header is damaged".to_owned()][..]));
    store.clear().unwrap();
    store.put(&key(44), &[9; 20]).unwrap();
    store.checkpoint().unwrap();
    let image = sim.images(1, 0).remove(0);
    let store = Pmekv::open(Sim::from_image(&image, Model::Line), HostDram, OPTIONS).unwrap();
    assert_eq!(store.len().unwrap(), 1);
}

/// With `Verify::Absence`, a lookup that passed a record with a damaged key returns an error: for reads, and for
/// writes, which would add a second record.
#[test]
fn absence_caused_by_damage_is_reported() {
    let long = |number: u32| format!("a beginning that many keys have in common, and {number:04}").into_bytes();
    let filled = |verify| {
        let sim = Sim::new(0, Model::Line);
        let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap().verifying(verify);
        (0..20).for_each(|number| store.put(&long(number), b"value").unwrap());
        (sim, store)
    };
    let get = |store: &OnSim, key: &[u8]| store.get(key, &mut |_, _, _| ());
    let (_, whole) = filled(Verify::Absence);
    assert!(!get(&whole, &long(50)).unwrap() && whole.put(&long(50), b"value").is_ok() && !whole.delete(b"x").unwrap());
    let mut hidden = 0;
    for byte in 0..long(0).len() as u64 {
        let [careless, careful] = [Verify::Values, Verify::Absence].map(|verify| {
            let (sim, store) = filled(verify);
            let place = place_of(&sim, &long(7)) + byte;
            let word = Offset(place & !7);
            sim.store(word, sim.load(word, Ordering::Acquire) ^ 1 << (place % 8 * 8), Ordering::Release);
            store
        });
        hidden += u32::from(matches!(get(&careless, &long(7)), Ok(false)));
        let key = &long(7)[..];
        let several = careful.multi_get(&[key, &long(8)], &mut |_, _| ());
        let put = BatchOp::Put { key, value: b"new" };
        let absent = Condition { key, required: Required::Absent };
        let other = BatchOp::Put { key: b"other", value: b"new" };
        assert!(get(&careful, key).is_err() && several.is_err(), "byte {byte}");
        assert!(careful.put(key, b"new").is_err() && careful.delete(key).is_err(), "byte {byte}");
        assert!(careful.write_batch(&[put]).is_err() && careful.write_batch_if(&[absent], &[other]).is_err());
        assert!(careful.update(key, &mut |_| Decision::Put(b"new"[..].into())).is_err(), "byte {byte}");
        let mut refused = 0;
        careful.multi_put_each(&[(key, b"new"), (b"more", b"new")], &mut |_, put| refused += u32::from(put.is_err()));
        assert_eq!(refused, 1, "byte {byte}");
    }
    assert!(hidden > 0);
}

/// Returns the offset of these bytes.
fn place_of(sim: &Sim, bytes: &[u8]) -> u64 {
    // SAFETY: the medium lives, and no thread writes to it during this borrow.
    let region = unsafe { std::slice::from_raw_parts(sim.base().as_ptr(), sim.len_bytes() as usize) };
    region.windows(bytes.len()).position(|window| window == bytes).expect("they are there") as u64
}

/// Returns a store whose checkpoint names the record of only one key, and that record's offset.
fn with_checkpoint(key: &[u8]) -> (Sim, OnSim, Offset) {
    let sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
    store.put(key, b"a value.").unwrap();
    store.checkpoint().unwrap();
    let at = record_of(&sim, &[key, b"a value."].concat());
    (sim, store, at)
}

/// The slot of a key's record has another key's record, which is intact: a checkpoint that named it could not be
/// opened.
#[test]
fn foreign_record_is_in_no_checkpoint() {
    let sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
    let keys = [b'a', b'b', b'c'].map(|first| [first; 24]);
    keys.iter().for_each(|key| store.put(key, b"12345678").unwrap());
    store.checkpoint().unwrap();
    let [first, second] = [&keys[0], &keys[1]].map(|key| record_of(&sim, key));
    for at in (0..48).step_by(8) {
        sim.store(second.plus(at), sim.load(first.plus(at), Ordering::Acquire), Ordering::Release);
    }
    store.put(b"d", b"").unwrap();
    assert!(is_damage(&store.checkpoint().unwrap_err()));
    assert!(store.get(b"d", &mut |_, _, _| {}).unwrap() && store.get(&keys[2], &mut |_, _, _| {}).unwrap());
}

/// Keys of up to 16 bytes are in the nodes: damage to their records is reported when they are read, and does not
/// prevent an opening.
#[test]
fn short_key_damage_is_reported_on_read() {
    for key in [&[b'k'; 24][..], &[b'k'; 17], &[b'k'; 16]] {
        let is_short = key.len() <= 16;
        let (sim, store, at) = with_checkpoint(key);
        drop(store);
        sim.store(at, sim.load(at, Ordering::Acquire) | 1 << 31, Ordering::Release);
        let opened = Pmekv::open(sim, HostDram, OPTIONS);
        assert_eq!(opened.is_ok(), is_short, "{key:?}");
        if let Ok(store) = opened {
            assert!(is_damage(&store.get(key, &mut |_, _, _| {}).unwrap_err()));
            store.put(b"another", b"value").unwrap();
            assert!(is_damage(&store.checkpoint().unwrap_err()));
            assert!(store.get(b"another", &mut |_, _, _| {}).unwrap());
        }
    }
}

/// Puts back what a place held before: an intact record of another key. A walk or scan that followed its key would
/// begin again at an earlier key, for ever, or leave keys out. The search for the first key of a page may pass
/// over the record.
#[test]
fn scans_end_at_foreign_record() {
    for (from, to) in [(5, 60), (60, 5), (5, 7), (79, 0), (0, 79)] {
        let sim = Sim::new(0, Model::Line);
        let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, OPTIONS).unwrap();
        (0..80).for_each(|number| store.put(&key(number), &[7; 20]).unwrap());
        let [from_at, to_at] = [from, to].map(|number| record_of(&sim, &key(number)));
        for at in (0..64).step_by(8) {
            sim.store(to_at.plus(at), sim.load(from_at.plus(at), Ordering::Acquire), Ordering::Release);
        }
        let mut cursor = Cursor::Start;
        let mut walk = || {
            cursor = store.walk(mem::replace(&mut cursor, Cursor::End), &mut |_, _, _| {})?;
            Ok::<bool, Error>(!cursor.is_done())
        };
        assert!(end_of(&mut walk).is_err_and(|error| is_damage(&error)), "a walk, {from} in the place of {to}");
        for direction in [Direction::Forward, Direction::Backward] {
            for page_len in [1, 3, 1000] {
                let mut cursor = ScanCursor::new(Bound::Unbounded, direction);
                let mut scan = || {
                    let mut left = page_len;
                    let mut each = |_: &[u8], _: &[u8]| {
                        left -= 1;
                        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    Ok::<bool, Error>(store.scan(&mut cursor, &mut each)? || left == 0)
                };
                let is_reported = end_of(&mut scan).is_err_and(|error| is_damage(&error));
                assert!(is_reported || page_len < 80, "{direction:?} by {page_len}, {from} in the place of {to}");
            }
        }
    }
}

/// Takes steps as long as they return true, and returns the last one.
fn end_of(step: &mut dyn FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
    (0..1000).map(|_| step()).find(|step| !matches!(step, Ok(true))).expect("the steps end")
}
