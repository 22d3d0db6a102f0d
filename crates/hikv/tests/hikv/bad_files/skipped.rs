//! Reading and converting damaged stores of all engines: damaged items are skipped and reported.

use hikv::{Durability, EngineKind, Options, Store};
use tempfile::TempDir;

use crate::bad_files::aged::Items;

const ITEM_COUNT: usize = 300;

fn key(i: usize) -> Vec<u8> {
    format!("the key of item {i:04}, long enough to lie beside a table").into_bytes()
}

/// Every value except the first contains some unique bytes.
fn value(i: usize) -> Vec<u8> {
    format!("the value of item {i:04}, ").repeat(if i == 7 { 400 } else { 3 }).into_bytes()
}

/// A closed store, and its file's bytes.
struct Made {
    home: TempDir,
    bytes: Vec<u8>,
}

impl Made {
    fn new(engine: EngineKind) -> Made {
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let options = Options::new()
            .engine(engine)
            .tuning(|tuning| tuning.partition_count(2))
            .durability(Durability::Process)
            .background(false);
        let options = if engine == EngineKind::Ink { options.tuning(|tuning| tuning.tree_order(7)) } else { options };
        let store = options.open(home.path().join("store")).unwrap();
        (0..ITEM_COUNT).for_each(|i| store.put(key(i), value(i)).unwrap());
        store.close().unwrap();
        let bytes = std::fs::read(home.path().join("store/store.hikv")).unwrap();
        Made { home, bytes }
    }

    /// Returns the offset of a text.
    fn find(&self, text: &[u8]) -> usize {
        self.bytes.windows(text.len()).position(|window| window == text).expect("the region holds the text")
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Inverts these bytes. Returns the intact items and the number of reports, as read and as converted.
    fn whole_without(&self, turned: &[usize]) -> (Items, usize) {
        let mut bytes = self.bytes.clone();
        turned.iter().for_each(|&at| bytes[at] ^= 0xFF);
        let path = self.home.path().join("store");
        std::fs::write(path.join("store.hikv"), bytes).unwrap();
        let (shown, reported) = whole(&path);
        let into = self.home.path().join("into");
        let mut left_count = 0;
        let converted =
            hikv::convert_skipping_damage(&path, &into, EngineKind::HiKv, |_| {}, |_| left_count += 1).unwrap().items;
        assert_eq!((converted as usize, left_count), (shown.len(), reported));
        assert_eq!(whole(&into), (shown.clone(), 0));
        std::fs::remove_dir_all(into).unwrap();
        (shown, reported)
    }
}

fn whole(path: &std::path::Path) -> (Items, usize) {
    let store = Options::new().read_only(true).tuning(|tuning| tuning.skip_damaged(true)).open(path).unwrap();
    let (mut items, mut reported) = (Items::new(), 0);
    let each = |key: &[u8], value: &[u8], _| {
        assert_eq!(items.insert(key.to_vec(), value.to_vec()), None, "a key is shown twice");
    };
    store.read_view().unwrap().for_each_skipping_damage(each, |_| reported += 1).unwrap();
    (items, reported)
}

fn all_but(lost: &[usize]) -> Items {
    (0..ITEM_COUNT).filter(|i| !lost.contains(i)).map(|i| (key(i), value(i))).collect()
}

#[test]
fn damaged_items_are_skipped_and_reported() {
    for &engine in EngineKind::ALL {
        let made = Made::new(engine);
        let places = [3, 7, 100, ITEM_COUNT - 1].map(|i| made.find(&value(i)) + 20);
        assert_eq!(made.whole_without(&places), (all_but(&[3, 7, 100, ITEM_COUNT - 1]), 4), "{engine}");
        let keys = [4, 200].map(|i| made.find(&key(i)) + 17);
        let (shown, reported) = made.whole_without(&keys);
        assert_eq!((shown, reported), (all_but(&[4, 200]), 2), "{engine}");
    }
}

/// A PMEKV store with such a record opens in no other way.
#[test]
fn damaged_record_head_is_skipped_and_reported() {
    const HEADER_BYTES: usize = 16;
    let made = Made::new(EngineKind::Pmekv);
    let places = [0, 150].map(|i| made.find(&key(i)) - HEADER_BYTES);
    assert_eq!(made.whole_without(&places), (all_but(&[0, 150]), 2));
    assert!(Store::open_read_only(made.home.path().join("store")).is_err());
}

/// An unreadable node loses all items below it, and no others.
#[test]
fn items_next_to_damaged_node_are_read() {
    let made = Made::new(EngineKind::Ink);
    let named = |at: usize| made.word(at) as usize & 0xFFFF_FFFF_FFFF;
    let root = named(pbtree_root());
    let (first, second) = (named(root + 8), named(root + 24));
    for at in [first, second] {
        let (shown, reported) = made.whole_without(&[at]);
        assert!(shown.len() > ITEM_COUNT / 20 && shown.len() < ITEM_COUNT, "{}", shown.len());
        assert!(shown.iter().all(|(key, value)| all_but(&[]).get(key) == Some(value)));
        assert_eq!(reported, 1);
    }
    // A damaged separator hides no item.
    let separator = named(root + 16);
    assert_eq!(made.whole_without(&[separator + 9]), (all_but(&[]), 1));
    assert_eq!(made.whole_without(&[root + 24]).1, 1);
    assert_eq!(made.whole_without(&[root]), (Items::new(), 1));
}

/// Returns the offset of InK's root word.
fn pbtree_root() -> usize {
    16_384
}
