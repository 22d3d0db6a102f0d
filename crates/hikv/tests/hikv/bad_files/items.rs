//! Damaged items, and items that are too long.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use hikv::{Decision, Error, Limits, Options, Store, Verify};

use crate::bad_files::store::{Closed, ITEM_COUNT, assert_holds, assert_plain, key, value, verify};

const DAMAGED: usize = 100;
const HEADER_BYTES: usize = 16;

/// Returns the offset of the item to be damaged.
fn item(store: &Closed) -> usize {
    store.find(&key(DAMAGED)) - HEADER_BYTES
}

fn others() -> impl Iterator<Item = usize> {
    (0..ITEM_COUNT).filter(|&i| i != DAMAGED)
}

/// Asserts an error that names the damaged item.
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
    assert_corrupt(store.for_each(|_, _| ()), item);
    assert_holds(store, others());
}

#[test]
fn flipped_item_header_bit_is_an_error() {
    let store = Closed::new();
    let (whole, item) = (store.bytes(), item(&store));
    for bit in (0..HEADER_BYTES * 8).step_by(5) {
        store.alter(|bytes| bytes[item + bit / 8] ^= 1 << (bit % 8));
        let open = Options::new().tuning(|tuning| tuning.verify_reads(Verify::Values)).open(store.path()).unwrap();
        assert_corrupt(open.get(key(DAMAGED)), item);
        assert_found_by_verify(&open, item);
        drop(open);
        store.alter(|bytes| bytes.clone_from(&whole));
    }
}

#[test]
fn flipped_key_bit_is_an_error() {
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
fn verified_reads_find_flipped_value_bit() {
    let store = Closed::new();
    let item = item(&store);
    store.flip(item + HEADER_BYTES + key(DAMAGED).len() + 5);
    let careless = Options::new().tuning(|tuning| tuning.verify_reads(Verify::Nothing)).open(store.path()).unwrap();
    assert_ne!(careless.get(key(DAMAGED)).unwrap(), Some(value(DAMAGED).into()));
    drop(careless);
    let open = Store::open(store.path()).unwrap();
    let evening = open.snapshot().unwrap();
    assert_corrupt(open.get(key(DAMAGED)), item);
    assert_corrupt(open.in_place().get_part(key(DAMAGED), |value| value[0]), item);
    assert_corrupt(open.multi_get(&[key(DAMAGED)]), item);
    assert_corrupt(open.reader(key(DAMAGED)), item);
    assert_corrupt(evening.get(key(DAMAGED)), item);
    let mut range = open.ordered().unwrap().range(key(DAMAGED)..).unwrap();
    assert_corrupt(range.next().unwrap(), item);
    drop((range, evening));
    assert_found_by_verify(&open, item);
}

#[test]
fn updates_of_damaged_value_keep_bad_checksum() {
    let store = Closed::new();
    let item = item(&store);
    store.flip(item + HEADER_BYTES + key(DAMAGED).len() + 5);
    let open = Options::new().tuning(|tuning| tuning.verify_reads(Verify::Nothing)).open(store.path()).unwrap();
    assert_corrupt(open.expire(key(DAMAGED), Duration::from_secs(1000)), item);
    assert_corrupt(open.update(key(DAMAGED), |value| Decision::Put([value.unwrap(), b"!"].concat().into())), item);
    assert_found_by_verify(&open, item);
}

#[test]
fn long_value_is_verified_once() {
    /// Longer than one copy of a reader.
    const LONG_BYTES: usize = 4 << 20;
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    open.put("long", vec![7; LONG_BYTES]).unwrap();
    drop(open);
    let at = store.find(b"long") + 4 + LONG_BYTES / 2;
    let open = Store::open(store.path()).unwrap();
    let mut reader = open.reader("long").unwrap().unwrap();
    let mut first = [0; 100];
    reader.read_exact(&mut first).unwrap();
    // From here on the value is damaged while it is read: the reader returns the parts that it has verified.
    let file = File::options().write(true).open(store.file()).unwrap();
    file.write_all_at(&[8], at as u64).unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), rest[at - store.find(b"long") - 4 - 100]), (LONG_BYTES - 100, 8));
    assert_eq!(open.in_place().get_part("long", |value| value[0]).unwrap(), Some(7));
    assert!(matches!(open.get("long"), Err(Error::Corrupt { .. })));
    assert!(matches!(open.reader("long"), Err(Error::Corrupt { .. })));
}

#[test]
fn damaged_item_is_replaceable_unless_key_damaged() {
    let store = Closed::new();
    store.flip(item(&store) + HEADER_BYTES + key(DAMAGED).len());
    let open = Store::open(store.path()).unwrap();
    open.put(key(DAMAGED), value(DAMAGED)).unwrap();
    drop(open);
    store.assert_intact();
}

#[test]
fn too_long_keys_and_values_are_refused() {
    let store = Closed::new();
    let open = Store::open(store.path()).unwrap();
    let long_key = vec![b'k'; Limits::KEY_BYTES_MAX + 1];
    let errors = [
        open.put(&long_key, "v").unwrap_err(),
        open.get(&long_key).unwrap_err(),
        open.delete(&long_key).unwrap_err(),
        open.multi_get([&long_key]).unwrap_err(),
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
fn source_that_ends_early_changes_nothing() {
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
    store.assert_intact();
}
