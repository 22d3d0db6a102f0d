//! Stores that earlier releases made. Each opens, has its items, and can be written.
//!
//! An image consists of two files in a directory named after its engine and format version: `store.hikv.gz`, the
//! region, and `items.tsv.gz`, with a line for each item: the key in hexadecimal, the value's length and its CRC-32C.
//! The images of a new version are made with `cargo test -p hikv --test hikv make_images -- --ignored`, which does not
//! change existing ones.

mod image;
mod journals;
mod make;

use hikv::{EngineKind, Store, WriteBatch};
use image::{Image, Items, images, summary};

/// The engines in releases.
const ENGINES: &[EngineKind] = &[EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];

/// Asserts that the store has exactly the items in the image's list, by lookup and by walk.
fn assert_holds(store: &Store, items: &Items) {
    for (key, expected) in items {
        let found = store.in_place().get(key, summary).unwrap();
        assert_eq!(found.as_ref(), Some(expected), "key {key:?}");
    }
    let mut walked = Items::new();
    let walk = store.for_each(|key, value| {
        assert!(walked.insert(key.to_vec(), summary(value)).is_none(), "key {key:?} was shown twice");
    });
    walk.unwrap();
    assert!(walked == *items, "the walk shows other items");
    assert_eq!(store.len().unwrap(), items.len() as u64);
}

fn assert_sound(store: &Store, items: &Items) {
    let report = store.verify(|_| {}).unwrap();
    assert_eq!((report.items, report.damage), (items.len() as u64, vec![]));
}

#[test]
fn current_version_has_golden_images() {
    for &engine in ENGINES {
        let version = image::present_version(engine);
        assert!(images().iter().any(|image| image.version == version), "there is no image of {version}");
    }
}

#[test]
fn images_are_read_without_a_change() {
    for Image { version, region, items } in images() {
        let dir = image::unpack(&region);
        let store = Store::open_read_only(dir.path()).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_holds(&store, &items);
        assert_sound(&store, &items);
        drop(store);
        assert!(image::region_of(dir.path()) == region, "{version} was changed by reading");
    }
}

#[test]
fn images_can_be_written() {
    for Image { version, region, mut items } in images() {
        let dir = image::unpack(&region);
        let store = Store::open(dir.path()).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_holds(&store, &items);
        let keys: Vec<_> = items.keys().cloned().collect();
        for (i, key) in keys.iter().enumerate() {
            match i % 3 {
                0 => assert!(store.delete(key).unwrap() && items.remove(key).is_some()),
                1 => put(&store, &mut items, key, &[i as u8; 900]),
                _ => put(&store, &mut items, &[key, &b" again"[..]].concat()[..key.len().min(60_000) + 6], b"new"),
            }
        }
        write_batch(&store, &mut items, keys.iter().step_by(4));
        drop(store);
        let store = Store::open(dir.path()).unwrap();
        assert_holds(&store, &items);
        assert_sound(&store, &items);
        store.clear().unwrap();
        assert_holds(&store, &Items::new());
    }
}

#[test]
fn images_get_a_first_tree() {
    for Image { version, region, items } in images() {
        let dir = image::unpack(&region);
        let store = Store::open(dir.path()).unwrap_or_else(|error| panic!("{version}: {error}"));
        let mut items = items;
        put(&store, &mut items, &[0xFF, 0x11, 0, 16, 7], b"looks like a key of a tree");
        assert!(store.trees().unwrap().is_empty() && !hikv::FrontEnd::of(&store).has_trees(), "{version}");
        let tree = store.tree("t").unwrap_or_else(|error| panic!("{version}: {error}"));
        tree.put(b"", b"of the tree").unwrap();
        assert_holds(&store, &items);
        drop((tree, store));
        let store = Store::open(dir.path()).unwrap();
        assert!(hikv::FrontEnd::of(&store).has_trees(), "{version}");
        assert_holds(&store, &items);
        let tree = store.existing_tree("t").unwrap().expect("it was made");
        assert_eq!((tree.len().unwrap(), tree.get("").unwrap().as_deref()), (1, Some(&b"of the tree"[..])));
        assert_eq!(store.verify(|_| {}).unwrap().damage, []);
    }
}

fn put(store: &Store, items: &mut Items, key: &[u8], value: &[u8]) {
    store.put(key, value).unwrap();
    items.insert(key.to_vec(), summary(value));
}

fn write_batch<'a>(store: &Store, items: &mut Items, keys: impl Iterator<Item = &'a Vec<u8>>) {
    let mut batch = WriteBatch::new();
    for (i, key) in keys.take(1024).enumerate() {
        if i % 2 == 0 {
            batch.delete(key);
            items.remove(key);
        } else {
            batch.put(key, b"in a batch");
            items.insert(key.clone(), summary(b"in a batch"));
        }
    }
    store.write(&batch).unwrap();
}

/// The offset of the feature flags in the first copy of the superblock, and the flag for values that name their keys.
const FEATURES_AT: usize = 52;
const TAGGED_VALUES: u32 = 64;

#[test]
fn conversion_adds_tags_to_old_values() {
    let features = |region: &[u8]| u32::from_le_bytes(*region[FEATURES_AT..].first_chunk().unwrap());
    let older = images()
        .into_iter()
        .filter(|image| image.version.starts_with("ink-") && features(&image.region) & TAGGED_VALUES == 0);
    let mut count = 0;
    for Image { version, region, items } in older {
        let dir = image::unpack(&region);
        let (from, into) = (dir.path().join("from"), dir.path().join("into"));
        std::fs::create_dir(&from).unwrap();
        std::fs::rename(dir.path().join("store.hikv"), from.join("store.hikv")).unwrap();
        hikv::convert(&from, &into, EngineKind::Ink, |_| {}).unwrap_or_else(|error| panic!("{version}: {error}"));
        let store = Store::open_read_only(&into).unwrap();
        assert_holds(&store, &items);
        assert_sound(&store, &items);
        assert_ne!(features(&image::region_of(&into)) & TAGGED_VALUES, 0, "{version}");
        count += 1;
    }
    assert!(count >= 2, "{count} older stores of InK");
}
