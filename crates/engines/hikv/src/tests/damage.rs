//! A flipped bit: no damaged value is reported as absent, and the check names it.

use index::partitioned_hash::Slot;
use pmem::{Bytes, Offset};

use super::rig::Rig;
use engine::prelude::*;
use engine::{Error, Expiry, Verify};
use items::NewItem;
use items::layout::HEADER_BYTES;

const KEY: &[u8] = b"the key whose item is damaged";
const VALUE: &[u8] = b"and its value, which crosses a line";
const ITEM_BYTES: u64 = (HEADER_BYTES + KEY.len() + VALUE.len()) as u64;

fn rig() -> Rig {
    let rig = Rig::new();
    (0..50u32).for_each(|number| rig.put(&number.to_le_bytes(), &[0; 40]));
    rig.put(KEY, VALUE);
    rig
}

fn flip(rig: &Rig, at: Offset, bit: u64) {
    let at = at.plus(bit / 8);
    // SAFETY: only this test uses the store, and it keeps no reference into the region.
    unsafe {
        let byte = rig.sim().bytes(at.span(1)).unwrap()[0];
        rig.sim().write(at, &[byte ^ 1 << (bit % 8)]);
    }
}

/// Flips every bit of the item, one at a time.
fn for_each_flipped_bit(rig: &Rig, mut test: impl FnMut(u64)) {
    let item = rig.position(KEY).offset();
    for bit in 0..ITEM_BYTES * 8 {
        flip(rig, item, bit);
        test(bit);
        flip(rig, item, bit);
    }
    assert_eq!((rig.get(KEY).unwrap(), rig.damage()), (Some(VALUE.to_vec()), vec![]));
}

#[test]
fn check_names_every_bit_flip() {
    let rig = rig();
    let item = rig.position(KEY).offset();
    let key_bits = HEADER_BYTES as u64 * 8..(HEADER_BYTES + KEY.len()) as u64 * 8;
    for_each_flipped_bit(&rig, |bit| {
        let found = rig.get(KEY);
        assert!(!matches!(found, Ok(None)), "absent with bit {bit} flipped");
        if key_bits.contains(&bit) {
            assert!(matches!(found, Err(Error::Corrupt { offset, .. }) if offset == item.0), "bit {bit}: {found:?}");
        }
        let damage = rig.damage();
        assert!(damage.iter().any(|damage| damage.starts_with(&format!("{:#x}", item.0))), "bit {bit}: {damage:?}");
    });
}

#[test]
fn writers_reject_damaged_keys() {
    let rig = rig();
    let item = rig.position(KEY).offset();
    flip(&rig, item, HEADER_BYTES as u64 * 8);
    assert!(matches!(rig.store.put(KEY, b"new"), Err(Error::Corrupt { .. })));
    assert!(matches!(rig.store.delete(KEY), Err(Error::Corrupt { .. })));
    assert!(matches!(rig.store.multi_get(&[KEY], &mut |_, _| {}), Err(Error::Corrupt { .. })));
}

#[test]
fn verified_values_reject_every_bit_flip() {
    let Rig { store } = rig();
    let rig = Rig { store: store.verifying(Verify::Values) };
    for_each_flipped_bit(&rig, |bit| {
        let found = rig.get(KEY);
        assert!(matches!(found, Err(Error::Corrupt { .. })), "bit {bit}: {found:?}");
    });
}

/// Returns the slot of the key's entry.
fn slot(rig: &Rig) -> Slot {
    let (_pin, item) = (epoch::pin(), rig.position(KEY));
    let bucket =
        rig.store.writer().reader().index().lock(rig.store.writer().cx(), rig.store.writer().reader().signature(KEY));
    let found = bucket.find(|position| Ok::<_, Error>((position.item() == item).then_some(())));
    found.unwrap().expect("the key is there").slot
}

/// The entry has no checksum of its own, but with a wrong bit its words no longer match the item. Marks are left out: a
/// wrong DELETED is a delete.
#[test]
fn entry_bit_flip_is_named_after_restart() {
    const MARK_BITS: std::ops::Range<u64> = 48..53;
    const RESERVED_BITS: std::ops::Range<u64> = 61..64;
    let mut rig = rig();
    let slot = slot(&rig);
    let position_bits = (0..64).filter(|bit| !MARK_BITS.contains(bit) && !RESERVED_BITS.contains(bit) || *bit == 51);
    let bits = (0..64).map(|bit| (slot.signature, bit)).chain(position_bits.map(|bit| (slot.position, bit)));
    for (word, bit) in bits {
        flip(&rig, word, bit);
        rig = rig.reopened();
        assert_ne!(rig.damage(), Vec::<String>::new(), "bit {bit} of the word at {word:?}");
        flip(&rig, word, bit);
        rig = rig.reopened();
    }
    assert_eq!((rig.get(KEY).unwrap(), rig.damage()), (Some(VALUE.to_vec()), vec![]));
}

/// No flipped bit causes this.
#[test]
fn item_of_future_epoch_is_named() {
    let rig = rig();
    let (position, medium, _pin) = (rig.position(KEY), rig.store.medium(), epoch::pin());
    // SAFETY: the index names the position, and no other thread uses the store.
    unsafe {
        let item = crate::item::read(medium, position).unwrap();
        items::restamp(medium, position.offset(), &item, rig.store.writer().snapshots().stamp() + 1);
    }
    let named = format!("{:#x}: an item is of a later snapshot epoch than the store", slot(&rig).position.0);
    assert_eq!(rig.damage(), [named]);
}

#[test]
fn key_that_has_two_entries_is_named() {
    let rig = rig();
    let pin = epoch::pin();
    let again = rig.store.writer().prepare(&NewItem { key: KEY, value: VALUE, expiry: Expiry::NEVER }).unwrap();
    let position = again.position();
    again.reservation.publish();
    let bucket =
        rig.store.writer().reader().index().lock(rig.store.writer().cx(), rig.store.writer().reader().signature(KEY));
    bucket.insert(position).unwrap().settle(rig.store.medium()).unwrap();
    drop(pin);
    let damage = rig.damage();
    assert!(damage.len() == 1 && damage[0].ends_with("a key has two entries"), "{damage:?}");
}
