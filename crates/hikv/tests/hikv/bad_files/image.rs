//! A damaged clean image is not trusted: the store opens as after a crash.

use heap::layout::{CHUNK_HEADER_BYTES, IMAGE, UNIT_BYTES};
use hikv::{Options, Store};
use pmem::{seal, unseal};

use crate::bad_files::store::{Closed, ITEM_COUNT, key, value};

/// Returns a store whose image includes the order.
fn closed_in_order() -> Closed {
    let closed = Closed::new();
    let store = Options::new().background(false).open(closed.path()).unwrap();
    assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), ITEM_COUNT as u64);
    store.close().unwrap();
    closed
}

fn image_word(closed: &Closed) -> u64 {
    let at = IMAGE.0 as usize;
    unseal(u64::from_le_bytes(closed.bytes()[at..at + 8].try_into().unwrap())).expect("it is sealed")
}

fn set_image_word(closed: &Closed, word: u64) {
    let at = IMAGE.0 as usize;
    closed.alter(|bytes| bytes[at..at + 8].copy_from_slice(&seal(word).to_le_bytes()));
}

/// Returns the offset of the image.
fn start(closed: &Closed) -> usize {
    ((image_word(closed) & 0xFF_FFFF) * UNIT_BYTES + CHUNK_HEADER_BYTES) as usize
}

/// Returns the bytes from the image's start to the end of the words that its header counts.
fn image_bytes(closed: &Closed) -> usize {
    let (bytes, start) = (closed.bytes(), start(closed));
    let number = |at: usize| u32::from_le_bytes(bytes[start + at..start + at + 4].try_into().unwrap()) as usize;
    64 + 8 * (number(24) + 9 * number(20) + number(32))
}

/// Asserts that all items exist, collected again if `is_collected`, and that the store can be written and closed.
fn assert_sound(closed: &Closed, is_collected: bool) {
    let store = Options::new().background(false).open(closed.path()).unwrap();
    let keys: Vec<_> = store.ordered().unwrap().range::<&[u8]>(..).unwrap().map(|item| item.unwrap().0).collect();
    assert!(keys.is_sorted() && keys.len() == ITEM_COUNT);
    let stats = store.stats();
    let steps_per_key = if is_collected { 2 } else { 1 };
    assert_eq!((stats.items, stats.order_total), (ITEM_COUNT as u64, steps_per_key * ITEM_COUNT as u64));
    store.put("new", [7; 5_000]).unwrap();
    (0..ITEM_COUNT).for_each(|i| assert_eq!(store.get(key(i)).unwrap(), Some(value(i).into())));
    assert_eq!(store.verify(|_| {}).unwrap().damage, vec![]);
}

#[test]
fn image_bit_flips_are_found() {
    let whole = closed_in_order();
    let (region, start, image_bytes) = (whole.bytes(), start(&whole), image_bytes(&whole));
    assert!(image_bytes > 64 + 8 * ITEM_COUNT);
    for at in (0..64).step_by(5).chain((64..image_bytes).step_by(173)).chain([image_bytes - 1]) {
        whole.alter(|bytes| bytes.clone_from(&region));
        whole.flip(start + at);
        assert_sound(&whole, true);
    }
    whole.alter(|bytes| bytes.clone_from(&region));
    assert_sound(&whole, false);
}

#[test]
fn stale_image_word_is_not_followed() {
    let whole = closed_in_order();
    let (region, word) = (whole.bytes(), image_word(&whole));
    // Other values: another number; the head; the segments; beyond the mark; no image.
    for other in [word ^ 1 << 24, word & !0xFF_FFFF | 1, word & !0xFF_FFFF | 2, word | 0xFF_FFFF, word & !0xFF_FFFF] {
        whole.alter(|bytes| bytes.clone_from(&region));
        set_image_word(&whole, other);
        assert_sound(&whole, true);
    }
}

#[test]
fn damaged_image_word_is_reported() {
    let whole = closed_in_order();
    whole.flip(IMAGE.0 as usize);
    let refused = Store::open(whole.path()).expect_err("the head is damaged").to_string();
    assert!(refused.contains("image word"), "{refused}");
}
