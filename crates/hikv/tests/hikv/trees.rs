//! Named trees: compared with models, on every engine, in memory and on a journal.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use hikv::{Clock, Decision, Durability, EngineKind, Error, Options, Order, PutOptions, Store, Tree, WriteBatch};
use tempfile::{TempDir, tempdir, tempdir_in};

const ENGINES: &[EngineKind] = &[EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Ink, EngineKind::Pmekv];

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).background(false).durability(Durability::Process)
}

/// Directories in memory and on a disk, where a store is a journal.
fn places() -> [TempDir; 2] {
    [tempdir_in("/dev/shm").unwrap(), tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()]
}

/// Calls `test` with options and a path for each engine and place.
fn on_each(test: impl Fn(&Options, &Path)) {
    for &engine in ENGINES {
        for place in places() {
            test(&options(engine), &place.path().join("store"));
        }
    }
}

type Items = BTreeMap<Vec<u8>, Vec<u8>>;

fn walked(tree: &Tree) -> Items {
    let mut items = Items::new();
    tree.for_each(|key, value| {
        assert!(items.insert(key.to_vec(), value.to_vec()).is_none(), "{key:x?} was shown twice");
    })
    .unwrap();
    items
}

/// Asserts that the tree has exactly these items, by every kind of read.
fn assert_holds(store: &Store, tree: &Tree, items: &Items) {
    assert_eq!(&walked(tree), items);
    assert_eq!(tree.len().unwrap(), items.len() as u64);
    let keys: Vec<_> = items.keys().collect();
    let values = tree.multi_get(&keys).unwrap();
    for (key, value) in keys.iter().zip(values) {
        let item = Some(&items[*key][..]);
        assert_eq!((value.as_deref(), tree.get(key).unwrap().as_deref()), (item, item), "{key:x?}");
        assert!(tree.contains(key).unwrap());
    }
    if store.features().order == Order::No {
        return;
    }
    let ordered = tree.ordered().unwrap();
    let in_order: Vec<_> = ordered.iter().unwrap().map(Result::unwrap).collect();
    assert!(in_order.iter().map(|(key, value)| (key, value)).eq(items.iter()), "{tree:?}");
    assert!(ordered.iter().unwrap().rev().map(Result::unwrap).eq(in_order.iter().rev().cloned()));
    assert_eq!(ordered.count::<&[u8]>(..).unwrap(), items.len() as u64);
    let first = |item: Option<(&Vec<u8>, &Vec<u8>)>| item.map(|(key, value)| (key.clone(), value.clone()));
    assert_eq!(ordered.first().unwrap(), first(items.first_key_value()));
    assert_eq!(ordered.last().unwrap(), first(items.last_key_value()));
    for bound in [&b""[..], b"k", &[0xFF], &[0xFF, 5], &[0xFF, 0x11, 0], &[0xFF, 0x20], &[0xFF; 3]] {
        let bound = bound.to_vec();
        assert_eq!(ordered.ceiling(&bound).unwrap(), first(items.range(bound.clone()..).next()), "{bound:x?}");
        assert_eq!(ordered.floor(&bound).unwrap(), first(items.range(..=bound.clone()).next_back()), "{bound:x?}");
        let found: Vec<_> = ordered.range(bound.clone()..).unwrap().map(Result::unwrap).collect();
        assert!(found.iter().map(|(key, value)| (key, value)).eq(items.range(bound.clone()..)), "{bound:x?}");
        assert_eq!(ordered.count(..bound.clone()).unwrap(), items.range(..bound.clone()).count() as u64);
        let with_prefix = items.iter().filter(|(key, _)| key.starts_with(&bound)).count();
        assert_eq!(ordered.prefix(&bound).unwrap().count(), with_prefix);
        assert_eq!(tree.first_items(bound.clone().., 3).unwrap().len(), items.range(bound..).take(3).count());
    }
}

/// Keys that could be confused with those of other trees, and usual ones.
fn some_key(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..8) {
        0 => vec![0xFF; rng.usize(..4)],
        1 => vec![0xFF, rng.u8(..0x22)],
        2 => vec![0xFF, rng.u8(0x0E..0x14), 0, rng.u8(14..20), rng.u8(..3)],
        3 => vec![0xFF, 0x10, rng.u8(..4), 0, 0, 0, rng.u8(14..20)],
        4 => [&[b'l'; 200][..], &[rng.u8(..4)]].concat(),
        _ => format!("key {}", rng.u8(..40)).into_bytes(),
    }
}

#[test]
fn tree_has_its_own_keys() {
    on_each(|options, path| {
        let store = options.open(path).unwrap();
        let (jobs, users) = (store.tree("jobs").unwrap(), store.tree("users").unwrap());
        store.put("1", "nameless").unwrap();
        jobs.put("1", "job").unwrap();
        assert_eq!(store.get("1").unwrap().as_deref(), Some(&b"nameless"[..]));
        assert_eq!(jobs.get("1").unwrap().as_deref(), Some(&b"job"[..]));
        assert_eq!(users.get("1").unwrap(), None);
        assert!(store.existing_tree("other").unwrap().is_none());
        let names: Vec<_> = store.trees().unwrap().into_iter().map(|tree| (tree.name, tree.id)).collect();
        assert_eq!(names, [("jobs".to_owned(), 16), ("users".to_owned(), 17)]);
        assert_eq!((jobs.name().as_deref(), store.name()), (Some("jobs"), None));
        drop((jobs, users));
        store.close().unwrap();
        let store = options.open(path).unwrap();
        assert_holds(&store, &store, &Items::from([(b"1".to_vec(), b"nameless".to_vec())]));
        let jobs = store.existing_tree("jobs").unwrap().unwrap();
        assert_holds(&store, &jobs, &Items::from([(b"1".to_vec(), b"job".to_vec())]));
        assert_eq!(store.tree("third").unwrap().name().as_deref(), Some("third"));
        assert_eq!(store.trees().unwrap()[1].id, 18);
    });
}

#[test]
fn operations_match_those_of_separate_maps() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    on_each(|options, path| {
        let mut rng = Rng::with_seed(7);
        let mut models: [Items; 4] = Default::default();
        for round in 0..4 {
            let store = options.open(path).unwrap();
            // In the first round, the store gets its first tree after some keys that look marked.
            for _ in 0..if round == 0 { 60 } else { 0 } {
                let (key, value) = (some_key(&mut rng), vec![rng.u8(..); rng.usize(..40)]);
                store.put(&key, &value).unwrap();
                models[3].insert(key, value);
            }
            assert_holds(&store, &store, &models[3]);
            let trees = NAMES.map(|name| store.tree(name).unwrap());
            let tree_of = |number: usize| trees.get(number).unwrap_or(&store);
            for _ in 0..250 {
                let number = rng.usize(..4);
                let (tree, model) = (tree_of(number), &mut models[number]);
                let (key, value) = (some_key(&mut rng), vec![rng.u8(..); rng.usize(..40)]);
                let old = model.get(&key).cloned();
                match rng.u8(..12) {
                    0..4 => {
                        tree.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                    4 => assert_eq!(tree.delete(&key).unwrap(), model.remove(&key).is_some()),
                    5 => {
                        let is_put = tree.insert_if_absent(&key, &value).unwrap();
                        assert_eq!(is_put, old.is_none());
                        model.entry(key).or_insert(value);
                    }
                    6 => {
                        tree.update(&key, |found| {
                            assert_eq!(found, old.as_deref());
                            Decision::Put([found.unwrap_or_default(), b"+"].concat().into())
                        })
                        .unwrap();
                        model.entry(key).or_default().push(b'+');
                    }
                    7 => {
                        let items: Vec<_> = (0..rng.u8(..90)).map(|_| (some_key(&mut rng), value.clone())).collect();
                        tree.multi_put(items.iter().map(|(key, value)| (key, value))).unwrap();
                        model.extend(items);
                    }
                    8 => {
                        let seen = tree.get_item(&key).unwrap();
                        let options = match &seen {
                            Some(item) => PutOptions::new().expect_version(item.version),
                            None => PutOptions::new().expect_absent(),
                        };
                        tree.put_with(&key, &value, options).unwrap();
                        assert!(tree.put_with(&key, b"never", options).is_err());
                        model.insert(key, value);
                    }
                    9 => {
                        let keys: Vec<_> = (0..80).map(|_| some_key(&mut rng)).collect();
                        hikv::FrontEnd::of(tree).multi_delete_each(&keys, |i, was_there| {
                            assert_eq!(was_there.unwrap(), model.remove(&keys[i]).is_some());
                        });
                    }
                    10 => {
                        // A batch over all trees.
                        let mut batch = WriteBatch::new();
                        batch.put(&key, &value);
                        models[number].insert(key.clone(), value.clone());
                        for (other, model) in models.iter_mut().enumerate() {
                            let byte = [other as u8];
                            batch.tree(tree_of(other)).put(&key, byte).delete(byte);
                            model.insert(key.clone(), byte.to_vec());
                            model.remove(&byte[..]);
                        }
                        tree.write(&batch).unwrap();
                    }
                    _ if rng.u8(..8) == 0 => {
                        tree.clear().unwrap();
                        model.clear();
                    }
                    _ => assert_eq!(tree.get(&key).unwrap().as_deref(), old.as_deref()),
                }
            }
            (0..4).for_each(|number| assert_holds(&store, tree_of(number), &models[number]));
            drop(trees);
            store.close().unwrap();
        }
        let store = options.open(path).unwrap();
        assert_eq!(store.verify(|_| {}).unwrap().damage, []);
    });
}

#[test]
fn tree_is_renamed_swapped_dropped_and_cleared() {
    on_each(|options, path| {
        let store = options.open(path).unwrap();
        let (a, b) = (store.tree("a").unwrap(), store.tree("b").unwrap());
        a.put("k", "of a").unwrap();
        b.put("k", "of b").unwrap();
        store.rename_tree("a", "c").unwrap();
        assert_eq!((a.name().as_deref(), a.get("k").unwrap().as_deref()), (Some("c"), Some(&b"of a"[..])));
        assert!(matches!(store.rename_tree("a", "d"), Err(Error::NoSuchTree { name }) if &*name == "a"));
        assert!(matches!(store.rename_tree("c", "b"), Err(Error::TreeExists { name }) if &*name == "b"));
        store.swap_trees("b", "c").unwrap();
        assert_eq!(a.get("k").unwrap().as_deref(), Some(&b"of b"[..]));
        assert_eq!(b.get("k").unwrap().as_deref(), Some(&b"of a"[..]));
        b.clear().unwrap();
        assert_eq!(b.get("k").unwrap(), None);
        b.put("k", "after").unwrap();
        assert_eq!(walked(&b).len(), 1);
        store.drop_tree("c").unwrap();
        for result in [a.get("k").map(drop), a.put("k", ""), a.delete("k").map(drop), a.len().map(drop), a.clear()] {
            assert!(matches!(result, Err(Error::NoSuchTree { .. })), "{result:?}");
        }
        let again = store.tree("c").unwrap();
        assert_eq!(again.get("k").unwrap(), None);
        assert!(a.get("k").is_err(), "the old handle is not one of the new tree");
        drop((a, b, again));
        store.close().unwrap();
        let store = options.open(path).unwrap();
        assert_eq!(store.existing_tree("b").unwrap().unwrap().get("k").unwrap().as_deref(), Some(&b"after"[..]));
        assert_eq!(walked(&store.tree("c").unwrap()), Items::new());
    });
}

#[test]
fn names_have_limits() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::HiKv).open(dir.path()).unwrap();
    for name in [String::new(), "x".repeat(256), "hikv:3".into(), "hikv:".into()] {
        assert!(matches!(store.tree(&name), Err(Error::TreeName { .. })), "{name}");
        store.tree("t").unwrap();
        assert!(matches!(store.rename_tree("t", &name), Err(Error::TreeName { .. })), "{name}");
    }
    for name in ["x".repeat(255), "ü".into(), "a b".into()] {
        store.tree(&name).unwrap().put("k", &name).unwrap();
        assert_eq!(store.tree(&name).unwrap().get("k").unwrap().as_deref(), Some(name.as_bytes()));
    }
}

#[test]
fn store_without_trees_has_no_flag() {
    on_each(|options, path| {
        let store = options.open(path).unwrap();
        let marked: Items = (0..0x22).map(|byte| (vec![0xFF, byte, 7], vec![byte])).collect();
        store.multi_put(marked.iter()).unwrap();
        let expiring = PutOptions::new().ttl(Duration::from_secs(3600));
        store.put_with([0xFF, 3, 9], "expires", expiring).unwrap();
        let expiry = store.get_item([0xFF, 3, 9]).unwrap().map(|item| item.expiry);
        assert_eq!(walked(&hikv::FrontEnd::of(&store).stored()).len(), 0x23, "nothing is added");
        store.tree("t").unwrap();
        assert_eq!(store.get_item([0xFF, 3, 9]).unwrap().map(|item| item.expiry), expiry);
        assert!(store.delete([0xFF, 3, 9]).unwrap());
        assert_holds(&store, &store, &marked);
        assert!(walked(&hikv::FrontEnd::of(&store).stored()).contains_key(&[0xFF, 0, 0xFF, 5, 7][..]));
    });
}

#[test]
fn conditional_batch_across_trees_is_atomic() {
    on_each(|options, path| {
        let store = options.open(path).unwrap();
        let (a, b) = (store.tree("a").unwrap(), store.tree("b").unwrap());
        a.put("k", "1").unwrap();
        let seen = a.get_item("k").unwrap().unwrap().version;
        let mut batch = WriteBatch::new();
        batch.expect_absent("k").tree(&a).expect_version("k", seen).delete("k").tree(&b).put("k", "1");
        b.write(&batch).unwrap();
        assert_eq!((a.get("k").unwrap(), b.get("k").unwrap().as_deref()), (None, Some(&b"1"[..])));
        assert!(matches!(b.write(&batch), Err(Error::ConditionFailed { condition: 0 })));
        assert!(matches!(store.write(&batch), Err(Error::ConditionFailed { condition: 1 })));
        store.drop_tree("a").unwrap();
        assert!(matches!(store.write(&batch), Err(Error::NoSuchTree { .. })));
    });
}

#[test]
fn batch_is_refused_by_another_store() {
    let (here, there) = (tempdir().unwrap(), tempdir().unwrap());
    let [here, there] = [&here, &there].map(|dir| options(EngineKind::HiKv).open(dir.path()).unwrap());
    let mut batch = WriteBatch::new();
    batch.tree(&here.tree("t").unwrap()).put("k", "v");
    there.tree("t").unwrap();
    assert!(matches!(there.write(&batch), Err(Error::NoSuchTree { .. })));
    here.write(&batch).unwrap();
}

#[test]
fn snapshot_reads_the_trees_of_its_moment() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::HiKv).open(dir.path()).unwrap();
    store.put([0xFF, 3], "marked").unwrap();
    let before = store.snapshot().unwrap();
    let t = store.tree("t").unwrap();
    t.put("k", "1").unwrap();
    let with_tree = store.snapshot().unwrap();
    t.clear().unwrap();
    t.put("k", "2").unwrap();
    store.rename_tree("t", "u").unwrap();
    assert!(before.tree("t").unwrap().is_none());
    assert_eq!(before.get([0xFF, 3]).unwrap().as_deref(), Some(&b"marked"[..]));
    let then = with_tree.tree("t").unwrap().unwrap();
    assert_eq!(then.get("k").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(with_tree.tree("u").unwrap().is_none());
    let items = |snapshot: &hikv::Snapshot| snapshot.range::<&[u8]>(..).unwrap().map(Result::unwrap).collect::<Items>();
    assert_eq!(items(&then), Items::from([(b"k".to_vec(), b"1".to_vec())]));
    let marked = Items::from([(vec![0xFF, 3], b"marked".to_vec())]);
    assert_eq!((items(&before), items(&with_tree)), (marked.clone(), marked));
}

#[test]
fn range_of_a_cleared_tree_ends() {
    let dir = tempdir().unwrap();
    let store = options(EngineKind::Ink).open(dir.path()).unwrap();
    let t = store.tree("t").unwrap();
    (0..2_000u32).for_each(|number| t.put(number.to_be_bytes(), [7; 100]).unwrap());
    let mut range = t.ordered().unwrap().iter().unwrap();
    assert!(range.next().unwrap().is_ok());
    t.clear().unwrap();
    t.put(5_000u32.to_be_bytes(), "new").unwrap();
    let rest: Vec<_> = range.map(|item| item.unwrap().0).collect();
    assert!(rest.len() < 1_000 && !rest.contains(&5_000u32.to_be_bytes().to_vec()), "{}", rest.len());
}

#[test]
fn clear_within_tree_callback_is_refused() {
    let dir = tempdir().unwrap();
    let clock = Clock::manual(1);
    let store = options(EngineKind::HiKv).clock(clock).open(dir.path()).unwrap();
    let t = store.tree("t").unwrap();
    t.put("k", "1").unwrap();
    let mut within = None;
    t.update("k", |_| {
        t.put("other", "2").unwrap();
        within = Some([t.clear(), store.drop_tree("t"), store.swap_trees("t", "t")]);
        Decision::Keep
    })
    .unwrap();
    let [clear, dropped, _] = within.unwrap();
    assert!(matches!((clear, dropped), (Err(Error::InsideCallback), Err(Error::InsideCallback))));
    assert_eq!(t.len().unwrap(), 2);
}
