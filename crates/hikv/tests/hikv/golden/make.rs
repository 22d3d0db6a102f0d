//! Makes the images of a new version: stores that use everything in the format.

use std::path::Path;

use hikv::{EngineKind, Options, Order, Store};

use super::ENGINES;
use crate::golden::image::{self, Items, summary};

/// Enough items to split the segment of the only partition.
const SMALL_COUNT: usize = 900;

#[test]
#[ignore = "makes new images, once for each version of the format"]
fn make_images() {
    for &engine in ENGINES {
        let image = image::home().join(image::present_version(engine));
        if !image.exists() {
            make(engine, &image);
        }
    }
}

fn make(engine: EngineKind, image: &Path) {
    // On tmpfs the region is the entire store.
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Options::new()
        .engine(engine)
        .tuning(|tuning| tuning.partition_count(1))
        .background(false)
        .open(dir.path())
        .unwrap();
    let items = fill(&store);
    let stats = store.stats();
    assert_eq!(stats.items, items.len() as u64);
    if let Some(split_count) = stats.figure("split_count") {
        assert!(split_count > 0.0, "{stats:?}");
    }
    if store.features().order != Order::No {
        // The order that a close writes belongs to the format.
        assert_eq!(store.ordered().unwrap().count::<&[u8]>(..).unwrap(), stats.items);
    }
    store.close().unwrap();
    image::save(image, &image::region_of(dir.path()), &items);
}

fn fill(store: &Store) -> Items {
    let mut items = Items::new();
    let mut put = |key: &[u8], value: &[u8]| {
        store.put(key, value).unwrap();
        items.insert(key.to_vec(), summary(value));
    };
    for i in 0..SMALL_COUNT {
        put(format!("key {i}").as_bytes(), &pattern(i, i % 300));
    }
    for (i, len_bytes) in [0, 15, 16, 512, 4_096, 40_000, 262_144, 300_000].into_iter().enumerate() {
        put(format!("of {len_bytes} bytes").as_bytes(), &pattern(i, len_bytes));
    }
    put(b"", b"the empty key");
    put(&[0xFF; 65_535], b"the longest key");
    put(b"binary \0\xFF\r\n", &(0..=255).collect::<Vec<u8>>());
    for i in (0..SMALL_COUNT).step_by(7) {
        put(format!("key {i}").as_bytes(), &pattern(i + 1, 290));
    }
    for i in (3..SMALL_COUNT).step_by(11) {
        let key = format!("key {i}").into_bytes();
        assert!(store.delete(&key).unwrap() && items.remove(&key).is_some());
    }
    items
}

/// Returns bytes that differ for different seeds, and compress well.
fn pattern(seed: usize, len_bytes: usize) -> Vec<u8> {
    vec![seed as u8; len_bytes]
}
