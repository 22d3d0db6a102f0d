//! Damage to items, and items that are too long.

use std::io;
use std::ops::ControlFlow;

use hikv::{Error, Limits, Options, Store};

use crate::bad_files::store::{Closed, ITEM_COUNT, assert_holds, assert_plain, key, value, verify};

const DAMAGED: usize = 100;
const HEADER_BYTES: usize = 16;

/// Where the item that is to be damaged begins.
fn item(store: &Closed) -> usize {
    store.find(&key(DAMAGED)) - HEADER_BYTES
}

fn others() -> impl Iterator<Item = usize> {
    (0..ITEM_COUNT).filter(|&i| i != DAMAGED)
}

/// An error that names the damaged item.
fn assert_corrupt<T: std::fmt::Debug>(result: Result<T, Error>, item: usize) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset, .. } if offset == item as u64), "{error}");
    assert_plain(&error.to_string());
    assert!(error.to_string().contains(&format!("{item:#x}")), "{error}");
}

fn assert_found_by_verify(store: &Store, item: usize) {
    let damage = verify(store).damage;
    assert_eq!(damage.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [item as u64], "{damage:?}");
    assert_plain(&damage[0].what);
    assert_corrupt(store.for_each(|_, _| ControlFlow::Continue(())), item);
    assert_holds(store, others());
}

#[test]
fn a_flipped_bit_of_an_item_header_is_an_error_and_never_absence() {
    let store = Closed::new();
    let (whole, item) = (store.bytes(), item(&store));
    for bit in (0..HEADER_BYTES * 8).step_by(5) {
        store.alter(|bytes| bytes[item + bit / 8] ^= 1 << (bit % 8));
        let open = Options::new().verify_values(true).open(store.path()).unwrap();
        assert_corrupt(open.get(key(DAMAGED)), item);
        assert_found_by_verify(&open, item);
        drop(open);
        store.alter(|bytes| bytes.clone_from(&whole));
    }
}

#[test]
fn a_flipped_bit_of_a_key_is_an_error_and_never_absence() {
    let store = Closed::new();
    let item = item(&store);
    store.flip(item + HEADER_BYTES + 3);
    let open = Store::open(store.path()).unwrap();
    assert_corrupt(open.get(key(DAMAGED)), item);
    assert_corrupt(open.contains(key(DAMAGED)), item);
    assert_corrupt(open.put(key(DAMAGED), "new"), item);
    assert_corrupt(open.delete(key(DAMAGED)), item);
    assert_found_by_verify(&open, item);
}

#[test]
fn a_flipped_bit_of_a_value_is_found_by_verify_and_by_reads_that_are_asked_to() {
    let store = Closed::new();
    let item = item(&store);
    store.flip(item + HEADER_BYTES + key(DAMAGED).len() + 5);
    let open = Store::open(store.path()).unwrap();
    assert_ne!(open.get(key(DAMAGED)).unwrap(), Some(value(DAMAGED)), "reads do not check values by default");
    assert_found_by_verify(&open, item);
    drop(open);
    let careful = Options::new().verify_values(true).open(store.path()).unwrap();
    assert_corrupt(careful.get(key(DAMAGED)), item);
    assert_corrupt(careful.multi_get(&[key(DAMAGED)]), item);
}

#[test]
fn a_damaged_item_can_be_replaced_unless_its_key_is_damaged() {
    let store = Closed::new();
    store.flip(item(&store) + HEADER_BYTES + key(DAMAGED).len());
    let open = Store::open(store.path()).unwrap();
    open.put(key(DAMAGED), value(DAMAGED)).unwrap();
    drop(open);
    store.assert_whole();
}

#[test]
fn keys_and_values_beyond_the_limits_are_refused() {
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    let long_key = vec![b'k'; Limits::KEY_BYTES_MAX + 1];
    let errors = [
        open.put(&long_key, "v").unwrap_err(),
        open.get(&long_key).unwrap_err(),
        open.delete(&long_key).unwrap_err(),
        open.multi_get(&[&long_key]).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), "the key has 65536 bytes; the limit is 65535");
    }
    let too_long = open.put_from("k", Limits::VALUE_BYTES_MAX + 1, io::repeat(1)).unwrap_err();
    assert_eq!(too_long.to_string(), "the value has 1073741825 bytes; the limit is 1073741824");
    open.put(&long_key[1..], "the longest key").unwrap();
    assert_eq!(open.get(&long_key[1..]).unwrap().as_deref(), Some(&b"the longest key"[..]));
}

#[test]
fn a_source_that_ends_early_changes_nothing() {
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    let used = open.stats().live_bytes;
    for announced in [11, 100_000, 1 << 20] {
        let error = open.put_from(key(0), announced, &b"ten bytes."[..]).unwrap_err();
        assert!(matches!(error, Error::Source(_)));
        assert_plain(&error.to_string());
    }
    assert_eq!(open.stats().live_bytes, used);
    drop(open);
    store.assert_whole();
}
