//! Backups and snapshots of a store whose base is still being loaded.

use std::collections::BTreeMap;

use hikv::Store;
use hikv::dump::{DumpReader, DumpValue};

use crate::journaled::{Place, buffered, copied};

/// Enough items that loading takes much longer than starting a backup.
const ITEM_COUNT: u32 = 4_000;
const VALUE_BYTES: usize = 4_000;
/// On a busy machine a store may be loaded before the test checks it.
const OPEN_COUNT_MAX: u32 = 100;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents() -> Contents {
    (0..ITEM_COUNT).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; VALUE_BYTES])).collect()
}

/// Returns a store as a killed process leaves it, and a closed one.
fn left() -> [Place; 2] {
    let place = Place::new();
    let store = place.open(&buffered());
    contents().iter().for_each(|(key, value)| store.put(key, value).unwrap());
    let killed = copied(&place);
    store.close().unwrap();
    [killed, place]
}

/// Opens the store until one opening is not loaded completely. Changes nothing.
fn opened(place: &Place) -> Store {
    let is_partial = |store: &Store| {
        // Without a journal there is nothing to load.
        store.stats().journal.is_none_or(|journal| journal.loaded_bytes < journal.base_bytes)
    };
    let stores = (0..OPEN_COUNT_MAX).map(|_| place.open(&buffered()));
    stores.into_iter().find(is_partial).expect("a store whose base is still being read")
}

fn items_of_dump(stream: &[u8]) -> Contents {
    let (mut reader, mut items) = (DumpReader::new(stream).unwrap(), Contents::new());
    while let Some(item) = reader.next_item().unwrap() {
        let DumpValue::Whole(value) = item.value else { panic!("a value that is not long is in pieces") };
        items.insert(item.key.to_vec(), value.to_vec());
    }
    items
}

#[test]
fn dump_during_load_is_complete() {
    for place in left() {
        let mut stream = Vec::new();
        assert_eq!(opened(&place).backup_to(&mut stream).unwrap(), u64::from(ITEM_COUNT));
        assert!(items_of_dump(&stream) == contents());
    }
}

#[test]
fn backup_during_load_is_complete() {
    for place in left() {
        let out = place.home.path().join("out");
        assert_eq!(opened(&place).backup(&out, |_| {}).unwrap().items, u64::from(ITEM_COUNT));
        let backup = Store::open_read_only(&out).unwrap();
        assert_eq!(backup.len().unwrap(), u64::from(ITEM_COUNT));
        assert!(contents().iter().all(|(key, value)| backup.get(key).unwrap().as_deref() == Some(&**value)));
    }
}

#[test]
fn snapshot_during_load_is_stable() {
    for place in left() {
        let store = opened(&place);
        let snapshot = store.snapshot().unwrap();
        contents().keys().step_by(7).for_each(|key| store.put(key, "later").unwrap());
        let mut shown = Contents::new();
        let each = |key: &[u8], value: &[u8]| {
            shown.insert(key.to_vec(), value.to_vec());
        };
        snapshot.for_each(each).unwrap();
        assert!(shown == contents());
    }
}
