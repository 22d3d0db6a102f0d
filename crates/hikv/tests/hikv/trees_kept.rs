//! Named trees beyond the open store: the space of dropped ones, copies, dumps, checks, and stores of the server.

use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::Duration;

use hikv::dump::{DumpReader, DumpValue};
use hikv::{Durability, EngineKind, Error, Options, PutOptions, Store, Tree, WriteBatch};
use tempfile::tempdir;

const ENGINES: &[EngineKind] = &[EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];
const KEY_COUNT: u32 = 500;
/// Records of the catalog of a store with one tree: the head, the name, the id.
const RECORD_COUNT: usize = 3;

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).background(false).durability(Durability::Process)
}

fn fill(tree: &Tree) {
    let items = (0..KEY_COUNT).map(|number| (number.to_be_bytes(), number.to_le_bytes()));
    tree.multi_put(items).unwrap();
}

fn stored_count(store: &Store) -> usize {
    let mut count = 0;
    hikv::FrontEnd::of(store).stored().for_each(|_, _| count += 1).unwrap();
    count
}

fn work_until_idle(store: &Store) {
    while store.background().step().unwrap().is_more {}
}

fn assert_sound(store: &Store) {
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

#[test]
fn dropped_and_cleared_trees_are_emptied() {
    for &engine in ENGINES {
        let dir = tempdir().unwrap();
        let store = options(engine).open(dir.path()).unwrap();
        let (kept, cleared) = (store.tree("kept").unwrap(), store.tree("cleared").unwrap());
        fill(&kept);
        fill(&cleared);
        fill(&store.tree("dropped").unwrap());
        store.drop_tree("dropped").unwrap();
        cleared.clear().unwrap();
        cleared.put("new", "1").unwrap();
        assert_eq!(store.stats().dead_tree_count, 2);
        assert_eq!(store.stats().dead_key_count, None, "keys were not counted yet");
        store.len().unwrap();
        assert_eq!(store.stats().dead_key_count, Some(2 * u64::from(KEY_COUNT)));
        assert_sound(&store);
        work_until_idle(&store);
        let stats = store.stats();
        assert_eq!((stats.dead_tree_count, stats.reclaimed_count), (0, 2 * u64::from(KEY_COUNT)));
        assert_eq!(stored_count(&store), KEY_COUNT as usize + 1 + RECORD_COUNT + 2, "{engine}");
        assert_eq!((kept.len().unwrap(), cleared.len().unwrap()), (u64::from(KEY_COUNT), 1));
        assert_sound(&store);
    }
}

/// Some engines always have work while a key expires later.
#[test]
fn expiring_key_does_not_block_tree_deletion() {
    for &engine in ENGINES {
        let dir = tempdir().unwrap();
        let store = options(engine).open(dir.path()).unwrap();
        store.put_with("key", "value", PutOptions::new().ttl(Duration::from_secs(3600))).unwrap();
        fill(&store.tree("dropped").unwrap());
        store.drop_tree("dropped").unwrap();
        let is_deleted = (0..10_000).any(|_| {
            store.background().step().unwrap();
            store.stats().dead_tree_count == 0
        });
        assert!(is_deleted, "{engine}: {:?}", store.stats());
    }
}

#[test]
fn next_opening_goes_on_deleting() {
    for &engine in ENGINES {
        let dir = tempdir().unwrap();
        let store = options(engine).open(dir.path()).unwrap();
        fill(&store.tree("dropped").unwrap());
        store.tree("kept").unwrap().put("k", "v").unwrap();
        store.drop_tree("dropped").unwrap();
        store.close().unwrap();
        let store = options(engine).open(dir.path()).unwrap();
        assert_eq!((store.stats().dead_tree_count, stored_count(&store)), (1, KEY_COUNT as usize + RECORD_COUNT + 2));
        work_until_idle(&store);
        assert_eq!((store.stats().dead_tree_count, stored_count(&store)), (0, RECORD_COUNT + 1), "{engine}");
        assert_sound(&store);
    }
}

#[test]
fn a_thread_deletes_keys_of_dropped_trees() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::HiKv).background(true).open(dir.path()).unwrap();
    for round in 0..5 {
        fill(&store.tree("t").unwrap());
        store.drop_tree("t").unwrap();
        if round % 2 == 0 {
            while store.stats().dead_tree_count > 0 {
                thread::yield_now();
            }
            assert_eq!(stored_count(&store), 1, "only the head is left");
        }
    }
    store.close().unwrap();
}

#[test]
fn snapshot_keeps_keys_of_a_dropped_tree() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::HiKv).open(dir.path()).unwrap();
    fill(&store.tree("t").unwrap());
    let snapshot = store.snapshot().unwrap();
    store.drop_tree("t").unwrap();
    let later = store.snapshot().unwrap();
    work_until_idle(&store);
    let stats = store.stats();
    assert_eq!((stats.dead_tree_count, stats.reclaimed_count), (1, 0));
    drop(snapshot);
    work_until_idle(&store);
    let stats = store.stats();
    assert_eq!((stats.dead_tree_count, stats.reclaimed_count), (0, u64::from(KEY_COUNT)));
    drop(later);
}

/// Makes a store with two trees and nameless keys, one of which looks marked.
fn some_store(engine: EngineKind, path: &Path) -> Store {
    let store = options(engine).open(path).unwrap();
    fill(&store.tree("numbers").unwrap());
    store.tree("other").unwrap().put("k", "of other").unwrap();
    store.multi_put([(&b"k"[..], "nameless"), (&[0xFF, 5, 7], "marked")]).unwrap();
    store
}

fn assert_is_copy(path: &Path) {
    let store = Store::open(path).unwrap();
    let names: Vec<_> = store.trees().unwrap().into_iter().map(|tree| tree.name).collect();
    assert_eq!(names, ["numbers", "other"]);
    assert_eq!(store.existing_tree("numbers").unwrap().unwrap().len().unwrap(), u64::from(KEY_COUNT));
    let other = store.existing_tree("other").unwrap().unwrap();
    assert_eq!(other.get("k").unwrap().as_deref(), Some(&b"of other"[..]));
    assert_eq!(store.get("k").unwrap().as_deref(), Some(&b"nameless"[..]));
    assert_eq!(store.get([0xFF, 5, 7]).unwrap().as_deref(), Some(&b"marked"[..]));
    assert_eq!(store.len().unwrap(), 2);
    assert_sound(&store);
    // Its catalog goes on.
    assert_eq!(store.tree("third").unwrap().len().unwrap(), 0);
}

#[test]
fn copies_have_the_trees() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let store = some_store(EngineKind::HiKv, &path("store"));
    store.backup(path("backup"), |_| {}).unwrap();
    store.close().unwrap();
    assert_is_copy(&path("backup"));
    hikv::restore(path("store"), path("restored"), |_| {}).unwrap();
    assert_is_copy(&path("restored"));
    for &engine in ENGINES {
        hikv::convert(path("store"), path(engine.name()), engine, |_| {}).unwrap();
        assert_is_copy(&path(engine.name()));
    }
    let whole = |_| ControlFlow::Continue(());
    hikv::repair::repair(path("store"), path("repaired"), whole).unwrap();
    assert_is_copy(&path("repaired"));
}

#[test]
fn dump_has_the_trees() {
    let dir = tempdir().unwrap();
    let store = some_store(EngineKind::HiKv, &dir.path().join("store"));
    let mut stream = Vec::new();
    store.backup_to(&mut stream).unwrap();
    let mut reader = DumpReader::new(&stream[..]).unwrap();
    assert!(reader.has_trees());
    let copy = options(EngineKind::Ink).open(dir.path().join("copy")).unwrap();
    let stored = hikv::FrontEnd::of(&copy).stored_to_fill().unwrap();
    while let Some(item) = reader.next_item().unwrap() {
        let DumpValue::Whole(value) = item.value else { panic!("the values are short") };
        stored.put(item.key, value).unwrap();
    }
    drop(stored);
    copy.close().unwrap();
    assert_is_copy(&dir.path().join("copy"));

    let plain = options(EngineKind::HiKv).open(dir.path().join("plain")).unwrap();
    plain.put("k", "v").unwrap();
    let mut stream = Vec::new();
    plain.backup_to(&mut stream).unwrap();
    assert!(!DumpReader::new(&stream[..]).unwrap().has_trees());
}

#[test]
fn check_finds_keys_of_no_tree() {
    let dir = tempdir().unwrap();
    let store = some_store(EngineKind::Pmekv, dir.path());
    assert_sound(&store);
    hikv::FrontEnd::of(&store).stored().put([0xFF, 0x11, 1, 0, b'k'], "of an unknown tree").unwrap();
    hikv::FrontEnd::of(&store).stored().put([0xFF, 0x1F], "of none").unwrap();
    hikv::FrontEnd::of(&store).stored().delete([&[0xFF, 0x10, 1][..], b"other"].concat()).unwrap();
    let damage: Vec<_> = store.verify(|_| {}).unwrap().damage.into_iter().map(|damage| damage.what).collect();
    let expected = [
        "tree 17 has the name 'other', which does not lead to it",
        "1 keys belong to tree 256, which is unknown",
        "1 keys belong to no tree",
    ];
    assert_eq!(damage, expected);
}

#[test]
fn repair_names_trees_whose_names_are_lost() {
    let dir = tempdir().unwrap();
    let (damaged, whole) = (dir.path().join("damaged"), dir.path().join("whole"));
    let store = some_store(EngineKind::HiKv, &damaged);
    fill(&store.tree("dropped").unwrap());
    store.drop_tree("dropped").unwrap();
    let stored = hikv::FrontEnd::of(&store).stored();
    stored.put([0xFF, 0x11, 1, 0, b'k'], "of an unknown tree").unwrap();
    stored.delete([0xFF, 0x10, 0]).unwrap();
    stored.delete([&[0xFF, 0x10, 1][..], b"other"].concat()).unwrap();
    stored.delete([0xFF, 0x10, 2, 0, 0, 0, 16]).unwrap();
    drop(stored);
    store.close().unwrap();
    hikv::repair::repair(&damaged, &whole, |_| ControlFlow::Continue(())).unwrap();
    let store = options(EngineKind::HiKv).open(&whole).unwrap();
    let names: Vec<_> = store.trees().unwrap().into_iter().map(|tree| (tree.name, tree.id)).collect();
    assert_eq!(names, [("lost:256".to_owned(), 256), ("numbers".into(), 16), ("other".into(), 17)]);
    assert_eq!(store.existing_tree("numbers").unwrap().unwrap().len().unwrap(), u64::from(KEY_COUNT));
    assert_eq!(store.existing_tree("lost:256").unwrap().unwrap().len().unwrap(), 1);
    assert_eq!(store.get([0xFF, 5, 7]).unwrap().as_deref(), Some(&b"marked"[..]));
    assert_sound(&store);
    store.tree("new").unwrap();
    assert_eq!(store.trees().unwrap()[1].id, 257);
}

/// A store of the server from before named trees: its table, and keys of three databases, two of them swapped.
#[test]
fn databases_of_the_server_are_trees() {
    for &engine in ENGINES {
        let dir = tempdir().unwrap();
        let store = options(engine).open(dir.path()).unwrap();
        let mut table: Vec<u8> = (0..16).collect();
        table.swap(1, 3);
        table.extend((1u16 << 1 | 1 << 3).to_le_bytes());
        let mut batch = WriteBatch::new();
        batch.put([0xFF, 16], &table).put("k", "0").put([0xFF, 0, 0xFF, 5], "marked");
        batch.put(b"\xFF\x01k", "1").put(b"\xFF\x03k", "3").put([0xFF, 0x11, 7], "later");
        store.write(&batch).unwrap();
        let value = |store: &Store, name: &str| {
            let tree = store.existing_tree(name).unwrap();
            tree.map(|tree| tree.get("k").unwrap().map(|value| value.to_vec()))
        };
        for is_begun in [false, true] {
            assert_eq!(hikv::FrontEnd::of(&store).has_catalog(), is_begun);
            assert_eq!(value(&store, "hikv:0"), Some(Some(b"0".to_vec())));
            assert_eq!(value(&store, "hikv:1"), Some(Some(b"3".to_vec())));
            assert_eq!(value(&store, "hikv:3"), Some(Some(b"1".to_vec())));
            assert_eq!(value(&store, "hikv:2"), None);
            assert!(matches!(store.tree("hikv:2"), Err(Error::TreeName { .. })));
            store.tree("own").unwrap();
        }
        let nameless = [(vec![0xFF, 5], "marked"), (vec![0xFF, 0x11, 7], "later"), (b"k".to_vec(), "0")];
        for (key, value) in nameless {
            assert_eq!(store.get(&key).unwrap().as_deref(), Some(value.as_bytes()), "{engine} {key:x?}");
        }
        assert_eq!(store.len().unwrap(), 3);
        assert_sound(&store);
    }
}

/// Two threads write and clear their trees, and two more create and drop some. The store has no background threads.
#[test]
fn cleared_and_dropped_trees_keep_few_keys() {
    const THREAD_COUNT: u64 = 4;
    const BATCH_COUNT: u64 = 1_000;
    for (&engine, is_counted) in ENGINES.iter().flat_map(|engine| [(engine, false), (engine, true)]) {
        let place = tempdir().unwrap();
        let store = options(engine).open(place.path().join("store")).unwrap();
        let kept = store.tree("kept").unwrap();
        if is_counted {
            kept.len().unwrap();
        }
        let assert_few = || {
            let stats = store.stats();
            match stats.dead_key_count {
                Some(count) => assert!(count <= 32_768 + 3 * THREAD_COUNT * BATCH_COUNT, "{engine}: {count} dead keys"),
                None => assert!(stats.dead_tree_count <= 16 + THREAD_COUNT, "{engine}: {} ids", stats.dead_tree_count),
            }
        };
        let mut batch = WriteBatch::new();
        (0..BATCH_COUNT).for_each(|number| _ = batch.put(number.to_be_bytes(), ""));
        thread::scope(|scope| {
            for number in 0..THREAD_COUNT {
                let (store, kept, batch, assert_few) = (&store, &kept, &batch, &assert_few);
                scope.spawn(move || {
                    for round in 0_u64..15 {
                        let name = format!("{number}");
                        let tree = store.tree(&name).unwrap();
                        tree.write(batch).unwrap();
                        kept.put([number, round].map(u64::to_be_bytes).concat(), "").unwrap();
                        if number % 2 == 0 {
                            tree.clear().unwrap()
                        } else {
                            store.drop_tree(&name).unwrap()
                        }
                        assert_few();
                    }
                });
            }
        });
        assert_eq!(kept.len().unwrap(), THREAD_COUNT * 15, "{engine}");
        assert_sound(&store);
    }
}
