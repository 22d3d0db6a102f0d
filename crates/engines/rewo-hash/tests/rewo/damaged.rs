//! Damage in buckets causes an error or leaves a correct result, and never a panic; and read-only stores.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Check, Clock, Cursor, Depth, Expiry, Progress, Verify};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use index::block_hash::Slot;
use index::segmented::Cursor as Place;
use parking_lot::Mutex;
use pmem::{Bytes, Medium, Offset};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim};

use crate::hooked::{Hooked, reading_only};
use crate::splits::{first, key};
use crate::subject::PARAMETERS;

pub(crate) fn wrong<M: Medium>(store: &RewoHash<M, HostDram>) -> Vec<String> {
    let (mut check, mut wrong) = (Check::new(Depth::Deep), Vec::new());
    while !check.is_done() {
        store.check(&mut check, &mut |damage| wrong.push(damage.what)).unwrap();
    }
    wrong
}

fn get<M: Medium>(store: &RewoHash<M, HostDram>, key: &[u8]) -> Result<Option<Vec<u8>>, engine::Error> {
    let mut value = None;
    store.get(key, &mut |_, _, found| value = Some(found.to_vec()))?;
    Ok(value)
}

/// Returns the images that a power loss leaves at the steps of a put that moves another item. Items are large, so that
/// slots name places.
fn moved_images() -> (u32, Vec<Image>) {
    let (sim, last) = (Sim::new(0, Model::Line), first("move_count"));
    let store = RewoHash::format(sim.clone(), HostDram, &PARAMETERS).unwrap();
    (0..last).for_each(|i| store.put(&key(i), &[7; 40]).unwrap());
    let images = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim: &Sim, _| noted.lock().extend(sim.images(4, sim.step_count()))));
    store.put(&key(last), &[7; 40]).unwrap();
    sim.unobserve();
    let images = std::mem::take(&mut *images.lock());
    (last, images)
}

#[test]
fn read_only_store_merges_duplicates() {
    let (last, images) = moved_images();
    let mut duplicate_count = 0;
    for image in images {
        let open = || RewoHash::open(Hooked::on(Sim::from_image(&image, Model::Line)), HostDram).unwrap();
        let len = open().len().unwrap();
        reading_only(|| {
            let store = open();
            assert_eq!(store.len().unwrap(), len);
            assert_eq!(wrong(&store), Vec::<String>::new());
            let (mut shown, mut cursor) = (0, Cursor::Start);
            while cursor != Cursor::End {
                cursor = store.walk(cursor, &mut |_, _, _| shown += 1).unwrap();
            }
            assert_eq!(shown, len);
            assert!((0..last).all(|i| get(&store, &key(i)).unwrap().is_some()));
            duplicate_count += usize::from(slots(&store).len() as u64 > len);
        });
    }
    assert!(duplicate_count > 0);
}

/// Keys of every kind of slot.
const KEYS: [(&[u8], &[u8]); 7] = [
    (b"", b""),
    (b"a", b"fifteen bytes.."),
    (b"a key of 16 byte", b"eleven byte"),
    (b"a KEY of 16 byte", b"twelve bytes"),
    (b"fifteen bytes of", b"0123456789"),
    (b"a key that is longer than a slot", b"value"),
    (b"short", b"a value that is longer than a slot"),
];

fn filled() -> RewoHash<Sim, HostDram> {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    KEYS.iter().for_each(|(key, value)| store.put(key, value).unwrap());
    store
}

/// Returns the occupied slots of a store of one segment, with their buckets.
fn slots<M: Medium>(store: &RewoHash<M, HostDram>) -> Vec<(Offset, Slot)> {
    let _pin = epoch::pin();
    let mut all = Vec::new();
    let note = &mut |at, slot: &Slot| all.push((at, *slot));
    store.table().check_segment(store.medium(), Place::default(), &mut |_| (), note);
    all
}

fn flip(medium: &Sim, at: Offset, bits: u64) {
    medium.store(at, medium.load(at, Ordering::Relaxed) ^ bits, Ordering::Relaxed);
}

/// Damages the value of these bytes, wherever it is.
pub(crate) fn flip_value(medium: &Sim, value: &[u8]) {
    // SAFETY: the medium lives, and no thread writes to it during this borrow.
    let region = unsafe { std::slice::from_raw_parts(medium.base().as_ptr(), medium.len_bytes() as usize) };
    let at = region.windows(value.len()).position(|bytes| bytes == value).expect("the value is in the region") as u64;
    flip(medium, Offset(at / 8 * 8), 1 << (at % 8 * 8));
}

/// Buckets that were never written are zeros as well.
#[test]
fn page_of_zeros_among_items_is_reported() {
    let filled = || {
        let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
        (0..300).for_each(|i| store.put(&key(i), b"value").unwrap());
        store
    };
    assert_eq!(wrong(&filled()), Vec::<String>::new());
    let pages: BTreeSet<u64> = slots(&filled()).into_iter().map(|(Offset(at), _)| at / 4096 * 4096).collect();
    assert_eq!(pages.len(), 4);
    for page in pages {
        let store = filled();
        (page..page + 4096).step_by(8).for_each(|at| store.medium().store(Offset(at), 0, Ordering::Relaxed));
        assert!(wrong(&store).iter().any(|what| what.contains("zeros") || what.contains("header")), "{page}");
    }
}

/// A reader with `Verify::Absence` gets an error if damage may hide a key, and no writer puts the key a second time.
#[test]
fn absence_caused_by_damage_is_reported() {
    let probe = filled();
    let (mut hidden, mut reported) = (0, 0);
    for (at, _) in slots(&probe) {
        for word in 1..32 {
            let store = filled().verifying(Verify::Nothing);
            flip(store.medium(), at.plus(8 * word), 0x0101_0101_0101_0101);
            let lost: Vec<_> = KEYS.into_iter().filter(|(key, _)| matches!(get(&store, key), Ok(None))).collect();
            let store = store.verifying(Verify::Absence);
            for (key, _) in lost {
                hidden += 1;
                assert!(get(&store, key).is_err() && store.delete(key).is_err(), "{word}");
                assert!(store.put(key, b"new").is_err(), "{word}: the key would be there twice");
                reported += u32::from(store.write_batch(&[BatchOp::Put { key, value: b"new" }]).is_err());
            }
        }
    }
    assert!(hidden > 5 && reported == hidden, "{hidden} {reported}");
    assert!(filled().verifying(Verify::Absence).put(b"another", b"value").is_ok());
}

/// An item outside the table with a damaged key is not another key's: the key is not reported absent, and cannot be put
/// twice.
#[test]
fn key_with_damaged_item_is_not_absent() {
    const LONG: &[u8] = b"a key that is longer than a slot";
    let store = filled();
    flip_value(store.medium(), LONG);
    for outcome in [get(&store, LONG).map(drop), store.put(LONG, b"new"), store.delete(LONG).map(drop)] {
        assert!(matches!(outcome, Err(engine::Error::Corrupt { .. })), "{outcome:?}");
    }
}

#[test]
fn bucket_without_free_slot_is_reported() {
    let probe = filled();
    for (at, _) in slots(&probe) {
        let store = filled();
        let medium = store.medium();
        medium.store(at, medium.load(at, Ordering::Relaxed) | 0xFF, Ordering::Relaxed);
        for (key, _) in KEYS {
            let written = catch_unwind(AssertUnwindSafe(|| store.put(key, b"new")));
            assert!(written.is_ok(), "a put panics");
        }
        assert!(!wrong(&store).is_empty());
    }
}

/// Flips bits all over every bucket that has an item, and every bit of its meta word: nothing panics, a check reports
/// the damage, and no read returns a value that was not put.
#[test]
fn flipped_bits_are_never_believed() {
    let probe = filled();
    let mut all: Vec<_> = slots(&probe).into_iter().map(|(at, _)| at).collect();
    all.sort_unstable();
    all.dedup();
    let image = probe.medium().images(1, 1).remove(0);
    for at in all {
        for bit in (0..64).chain((64..256 * 8u64).step_by(13)) {
            let medium = Sim::from_image(&image, Model::Line);
            let bitmap = medium.load(at, Ordering::Relaxed);
            let is_used = bit >= 64 && bitmap >> ((bit / 8 - 8) / 31) & 1 == 1;
            flip(&medium, at.plus(bit / 64 * 8), 1 << (bit % 64));
            let outcome = catch_unwind(AssertUnwindSafe(|| used_with_damage(medium, is_used)));
            assert!(outcome.is_ok(), "bit {bit} of the bucket at {at:?}");
        }
    }
}

fn used_with_damage(medium: Sim, is_reported: bool) {
    let store = RewoHash::open(medium, HostDram).unwrap().verifying(Verify::Values);
    for (key, value) in KEYS {
        let found = get(&store, key).ok().flatten();
        assert!(found.is_none_or(|found| found == value), "{key:?} is wrong");
    }
    assert!(!is_reported || !wrong(&store).is_empty(), "a check finds nothing");
    let mut cursor = Cursor::Start;
    while let Ok(next) = store.walk(cursor, &mut |_, _, _| ())
        && next != Cursor::End
    {
        cursor = next;
    }
    for (key, _) in KEYS {
        let _ = store.put(key, b"new");
        let _ = store.expire(key, Expiry::at_ms(1 << 50));
    }
    let ops: Vec<_> = KEYS.iter().map(|(key, _)| BatchOp::Put { key, value: b"newer" }).collect();
    let _ = store.write_batch(&ops);
    KEYS.iter().for_each(|(key, _)| _ = store.delete(key));
    let _ = store.clear();
    store.run_idle_maintenance();
}

#[test]
fn reaper_ignores_damaged_expiry() {
    const EXPIRY_BYTES: u64 = 16;
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    let store = store.by_clock(Clock::manual(5000));
    store.put_until(b"a", b"value", Expiry::at_ms(1 << 20)).unwrap();
    let item = slots(&store)[0].1.position().unwrap().offset();
    flip(store.medium(), item.plus(EXPIRY_BYTES), 1 << 20);
    for _ in 0..10 {
        store.step().unwrap();
    }
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (1, 0));
    assert!(!wrong(&store).is_empty());
}

/// Keys that cannot be deleted, because their bucket has no free slot, do not keep other expired keys from being
/// reaped.
#[test]
fn expired_keys_behind_damaged_bucket_are_reaped() {
    let (clock, parameters) = (Clock::manual(100), Parameters { partition_count: 16, ..PARAMETERS });
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &parameters).unwrap().by_clock(clock.clone());
    while store.step().unwrap() == Progress::More {}
    (0..100).for_each(|i| store.put_until(&key(i), b"due", Expiry::at_ms(150)).unwrap());
    let ((at, _), medium) = (slots(&store)[0], store.medium());
    medium.store(at, medium.load(at, Ordering::Relaxed) | 0xFF, Ordering::Relaxed);
    clock.advance(Duration::from_millis(50));
    (0..100).for_each(|_| _ = store.step());
    let reaped_count = store.stats().reaped_count;
    assert!((90..100).contains(&reaped_count), "{reaped_count}");
}

/// The sweep does not free the item that a damaged slot named, and does not trust the place that it names now: nothing
/// is overwritten.
#[test]
fn damaged_slot_item_is_not_overwritten() {
    const POSITION_BYTES: u64 = 8;
    let probe = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    probe.put(b"a", &[0xA5; 100]).unwrap();
    probe.put(b"b", &[0x5A; 100]).unwrap();
    let (at, _) = slots(&probe)[0];
    let image = probe.medium().images(1, 1).remove(0);
    let region = |medium: &Sim| {
        // SAFETY: the medium lives, and no thread writes to it during this borrow.
        unsafe { std::slice::from_raw_parts(medium.base().as_ptr(), medium.len_bytes() as usize) }.to_vec()
    };
    let has = |medium: &Sim, value: &[u8]| region(medium).windows(value.len()).any(|bytes| bytes == value);
    for bit in 0..64 {
        let medium = Sim::from_image(&image, Model::Line);
        flip(&medium, at.plus(8 + POSITION_BYTES), 1 << bit);
        let store = RewoHash::open(medium.clone(), HostDram).unwrap();
        while store.step().unwrap() == Progress::More {}
        (0..30).for_each(|i| store.put(&key(i), &[7; 100]).unwrap());
        assert!(has(&medium, &[0xA5; 100]) && has(&medium, &[0x5A; 100]), "bit {bit}");
    }
}
