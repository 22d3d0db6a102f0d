//! Changes between the reads of a transaction and its commit that make a key look unchanged: each must be a conflict.

use std::time::Duration;

use hikv::{EngineKind, Error, Store, Transaction, Tree};
use pmem::Checksum;

use super::{age, has_order, stores};

const KEY: &str = "key";

/// In a slot, kept until the commit, and hashed at the read.
const LENGTHS: [usize; 3] = [8, 300, 100_000];

/// Puts after which a key has got its old place again, in a store that reuses places.
const PUT_COUNT_MAX: usize = 30_000;

/// Returns a value of the same length with the same CRC-32C. It differs by a multiple of the polynomial.
fn forged(value: &[u8]) -> Vec<u8> {
    let mut forged = value.to_vec();
    // The polynomial's first coefficient comes first; the bits of a byte begin with the least significant one.
    let bits = (0..33).filter(|bit| 0x1_1EDC_6F41_u64 >> (32 - bit) & 1 == 1);
    bits.for_each(|bit| forged[bit / 8] ^= 1 << (bit % 8));
    let checksum = |value| Checksum::default().update(b"header").update(value).value();
    assert!(forged != value && checksum(&forged) == checksum(value));
    forged
}

/// Returns the place of the key's value: the first word of its version.
fn place_of(tree: &Tree) -> u64 {
    tree.get_item(KEY).unwrap().unwrap().version.words()[0]
}

/// A store, the tree of the key, and a tree that has a forged value of the same key.
struct Scene<'a> {
    store: &'a Store,
    tree: &'a Tree,
    value: &'a [u8],
    forged: &'a [u8],
}

impl Scene<'_> {
    /// Puts the forged value at the place `old`. Returns false if the key does not get this place.
    fn put_at(&self, old: u64) -> bool {
        (0..PUT_COUNT_MAX).any(|_| {
            self.tree.put(KEY, self.forged).unwrap();
            place_of(self.tree) == old
        })
    }

    fn put_forged(&self) {
        self.tree.put(KEY, self.forged).unwrap();
    }
}

type Change = fn(&Scene<'_>);

/// The changes, by name. None of them leaves the key with the value that was read.
const CHANGES: [(&str, Change); 7] = [
    ("update", |scene| scene.put_forged()),
    ("same value with an expiry", |scene| {
        scene.tree.put_with(KEY, scene.value, hikv::PutOptions::new().ttl(Duration::from_secs(60))).unwrap();
    }),
    ("delete and insert", |scene| {
        assert!(scene.tree.delete(KEY).unwrap());
        scene.put_forged();
    }),
    ("compaction", |scene| {
        scene.put_forged();
        if scene.store.features().compaction {
            scene.store.compact(|_| {}).unwrap();
        }
    }),
    ("clear", |scene| {
        scene.tree.clear().unwrap();
        scene.put_forged();
    }),
    ("swap", |scene| match scene.tree.name() {
        Some(name) => scene.store.swap_trees(&name, "forged").unwrap(),
        None => scene.put_forged(),
    }),
    ("rename", |scene| match scene.tree.name() {
        Some(name) => {
            scene.store.rename_tree(&name, "renamed").unwrap();
            scene.store.existing_tree("renamed").unwrap().unwrap().put(KEY, scene.forged).unwrap();
            scene.store.rename_tree("renamed", &name).unwrap();
        }
        None => scene.put_forged(),
    }),
];

type Finish = fn(Transaction<'_>, &Tree) -> Result<(), Error>;

/// The ways to notice the change, by name.
const FINISHES: [(&str, Finish); 4] = [
    ("commit with a write", |tx, _| {
        tx.put("written", "x")?;
        tx.commit()
    }),
    ("commit of reads", |tx, _| tx.commit()),
    ("check", |tx, _| tx.check()),
    ("another read", |tx, tree| tx.tree(tree)?.expires_at(KEY).and(tx.check())),
];

/// Begins a transaction that has read the key, its expiry, and another key.
fn begin<'s>(store: &'s Store, tree: &Tree, value: &[u8]) -> Transaction<'s> {
    tree.multi_put([(KEY, value), ("other", value)]).unwrap();
    let tx = store.begin().unwrap();
    let read = tx.tree(tree).unwrap();
    assert_eq!(read.get(KEY).unwrap().as_deref(), Some(value));
    assert!(read.expires_at(KEY).unwrap().unwrap().is_never() && read.contains("other").unwrap());
    tx
}

#[test]
fn no_change_goes_unnoticed() {
    for (dir, store) in stores() {
        let (named, other) = (store.tree("tree").unwrap(), store.tree("forged").unwrap());
        // Each change waits for the disk on a journal.
        let lengths = if store.stats().journal.is_some() { &LENGTHS[1..2] } else { &LENGTHS[..] };
        for (tree, &len_bytes) in
            [&named, &store].into_iter().flat_map(|tree| lengths.iter().map(move |len| (tree, len)))
        {
            let value = vec![b'v'; len_bytes];
            let scene = Scene { store: &store, tree, value: &value, forged: &forged(&value) };
            for ((change_name, change), (name, finish)) in
                CHANGES.into_iter().flat_map(|change| FINISHES.map(|finish| (change, finish)))
            {
                for is_old in [false, true] {
                    other.put(KEY, scene.forged).unwrap();
                    let tx = begin(&store, tree, &value);
                    change(&scene);
                    if is_old {
                        age();
                    }
                    let finished = finish(tx, tree);
                    let (engine, at) = (store.engine_kind(), dir.path().display());
                    let case = || format!("{engine} {at}: {:?} {len_bytes} {change_name}, {name}", tree.name());
                    assert!(matches!(finished, Err(Error::Conflict)), "{}: {finished:?}", case());
                    assert_eq!(store.get("written").unwrap(), None, "{}", case());
                }
            }
        }
    }
}

/// The forged value is at the old place. Only the age of the attempt, and then the hash, show that it is another one.
#[test]
fn forged_value_at_old_place_is_detected() {
    let mut met = Vec::new();
    for (_, store) in stores().step_by(2) {
        let named = store.tree("tree").unwrap();
        for (tree, len_bytes) in [(&named, 300), (&store, 300), (&store, 100_000)] {
            let value = vec![b'v'; len_bytes];
            let scene = Scene { store: &store, tree, value: &value, forged: &forged(&value) };
            for (name, finish) in FINISHES {
                let tx = begin(&store, tree, &value);
                let is_met = scene.put_at(place_of(tree));
                let finished = finish(tx, tree);
                assert!(matches!(finished, Err(Error::Conflict)), "{} {name}: {finished:?}", store.engine_kind());
                if is_met {
                    met.push(store.engine_kind());
                } else {
                    break;
                }
            }
        }
    }
    met.dedup();
    assert_eq!(met, [EngineKind::HiKv, EngineKind::RewoHash, EngineKind::Pmekv], "InK's stamps never return");
}

/// A body that has read a range sees the value itself, so the place does not matter.
#[test]
fn forged_row_of_a_range_is_noticed() {
    for (_dir, store) in stores().filter(|(_, store)| has_order(store)) {
        for len_bytes in LENGTHS {
            let value = vec![b'v'; len_bytes];
            let scene = Scene { store: &store, tree: &store, value: &value, forged: &forged(&value) };
            for (name, finish) in &FINISHES[..2] {
                store.put(KEY, &value).unwrap();
                let tx = store.begin().unwrap();
                assert_eq!(tx.first().unwrap().unwrap().1, value);
                scene.put_forged();
                let finished = finish(tx, &store);
                assert!(matches!(finished, Err(Error::Conflict)), "{} {name}: {finished:?}", store.engine_kind());
            }
        }
    }
}
