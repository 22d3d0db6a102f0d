//! The changes that the tree rejects, and the damage that its check reports.

use std::sync::atomic::Ordering::Relaxed;

use super::super::{BPlusTree, Change, ChangeError, Edit, KeyStart, LoadError, Loader, NoDram};
use super::keys::key;
use super::rig::{Host, Items, Rig, damage, position};

fn rig_of(count: usize) -> Rig {
    let mut rig = Rig::new(40);
    rig.put(&(0..count).map(|number| key(3, number)).collect::<Vec<_>>());
    rig
}

#[test]
fn changes_that_contradict_the_tree_change_nothing() {
    let mut rig = rig_of(500);
    let (present, absent) = (key(3, 100), key(3, 600));
    let (there, new) = (rig.map[present], rig.item(present));
    assert_eq!(rig.apply_one(present, Edit::Insert(new)), Err(ChangeError::Exists(there)));
    assert_eq!(rig.apply_one(present, Edit::Remove(new)), Err(ChangeError::Missing(new)));
    assert_eq!(rig.apply_one(present, Edit::Replace { old: new, new }), Err(ChangeError::Missing(new)));
    assert_eq!(rig.apply_one(absent, Edit::Remove(there)), Err(ChangeError::Missing(there)));
    rig.check();
}

#[test]
fn unreadable_item_fails_only_if_needed() {
    let mut rig = Rig::new(usize::MAX);
    let [first, tied, other]: [&'static [u8]; 3] = [b"12345678a", b"12345678b", b"other"];
    rig.put(&[first]);
    let damaged = rig.map[first];
    rig.mark_dead(damaged);
    let (tied_item, other_item) = (rig.item(tied), rig.item(other));
    let refused = rig.apply_one(tied, Edit::Insert(tied_item));
    assert!(matches!(refused, Err(ChangeError::Keys(unreadable)) if unreadable.0 == damaged));
    assert_eq!(rig.apply_one(other, Edit::Insert(other_item)), Ok(()));
    assert_eq!(rig.apply_one(first, Edit::Remove(damaged)), Ok(()));
    assert_eq!(rig.apply_one(tied, Edit::Insert(tied_item)), Ok(()));
    assert_eq!(damage(&rig.tree, &rig.items), Vec::<String>::new());
}

#[test]
fn leaves_are_read_without_their_items() {
    let mut rig = Rig::new(usize::MAX);
    (0..9).for_each(|family| rig.put(&(0..500).map(|number| key(family, number)).collect::<Vec<_>>()));
    let expected: Vec<_> = rig.map.values().copied().collect();
    expected.iter().for_each(|item| rig.mark_dead(*item));
    assert_eq!(rig.leaves(), expected);
}

/// The tree stays sound wherever memory runs out, and continues where it can.
#[test]
fn no_more_memory_is_an_error() {
    assert!(matches!(BPlusTree::new(Host::with_bytes(1000)), Err(NoDram { .. })));
    for bytes in [64 << 10, 128 << 10, 256 << 10] {
        let mut rig = Rig::new(40);
        rig.tree = BPlusTree::new(Host::with_bytes(bytes)).unwrap();
        let mut refused = 0;
        for number in 0..20_000usize {
            let key: &'static [u8] = format!("{:016x}", number.wrapping_mul(0x9E37_79B9)).into_bytes().leak();
            let new = rig.item(key);
            match rig.apply_one(key, Edit::Insert(new)) {
                Ok(()) => drop(rig.map.insert(key, new)),
                Err(error) => {
                    assert!(matches!(error, ChangeError::NoDram { .. }));
                    refused += 1;
                }
            }
        }
        assert!(refused > 1000 && rig.map.len() > bytes / 40, "{refused} refused, {} there", rig.map.len());
        rig.check();
    }
}

#[test]
fn loading_refuses_what_is_not_sorted() {
    let loader = Loader::new(Host::default());
    let load = |low: &[u8], high: Option<&[u8]>, keys: &[&'static [u8]]| {
        let items = keys.iter().enumerate().map(|(number, &key)| Ok::<_, ()>((position(number), key)));
        loader.part(low, high, items).map(drop)
    };
    assert_eq!(load(b"", None, &[b"a", b"b"]), Ok(()));
    assert_eq!(load(b"", None, &[b"b", b"a"]), Err(LoadError::Unsorted(position(1))));
    assert_eq!(load(b"", None, &[b"a", b"a"]), Err(LoadError::Unsorted(position(1))));
    assert_eq!(load(b"b", None, &[b"a"]), Err(LoadError::Unsorted(position(0))));
    assert_eq!(load(b"", Some(b"b"), &[b"a", b"b"]), Err(LoadError::Unsorted(position(1))));
}

#[test]
#[should_panic(expected = "leave a gap")]
fn parts_that_leave_a_gap_are_refused() {
    let loader = Loader::new(Host::default());
    let nothing = || std::iter::empty::<Result<_, ()>>();
    let parts = vec![loader.part(b"", Some(b"b"), nothing()).unwrap(), loader.part(b"c", None, nothing()).unwrap()];
    let _ = loader.finish(parts);
}

#[test]
#[should_panic(expected = "longer than the key")]
fn start_longer_than_its_key_is_refused() {
    let _ = KeyStart::new(b"abc", 2);
}

/// The check reports each kind of damage.
#[test]
fn the_check_notices() {
    let noticed = |what: &str, harm: &dyn Fn(&Rig)| {
        let rig = rig_of(500);
        rig.check();
        harm(&rig);
        let found = damage(&rig.tree, &rig.items);
        assert!(found.iter().any(|found| found.contains(what)), "{what}: {found:?}");
    };
    let first_leaf = |rig: &Rig| {
        let mut node = rig.tree.nodes.root_word().root().node();
        for _ in 0..rig.tree.nodes.root_word().root().height() {
            node = rig.tree.nodes.root_word().inner(node).child(0);
        }
        node
    };
    noticed("a head does not", &|rig| rig.tree.nodes.root_word().leaf(first_leaf(rig)).heads[3].store(7, Relaxed));
    noticed("keys do not ascend", &|rig| {
        let leaf = rig.tree.nodes.root_word().leaf(first_leaf(rig));
        leaf.set_position(1, leaf.position(0));
    });
    noticed("not linked", &|rig| {
        rig.tree.nodes.root_word().leaf(first_leaf(rig)).next.store(std::ptr::null_mut(), Relaxed)
    });
    noticed("miscounted", &|rig| rig.tree.nodes.root_word().leaf(first_leaf(rig)).remove(0));
    noticed("prefix is longer", &|rig| rig.tree.nodes.root_word().leaf(first_leaf(rig)).prefix_bytes.store(9, Relaxed));
    noticed("unused", &|rig| {
        let leaf = rig.tree.nodes.root_word().leaf(first_leaf(rig));
        leaf.count.store(leaf.count() as u16 - 1, Relaxed);
    });
    noticed("locked", &|rig| {
        let leaf = rig.tree.nodes.root_word().leaf(first_leaf(rig));
        std::mem::forget(leaf.version.try_lock(leaf.version.try_read().unwrap()));
    });
    noticed("outside of its leaf's fences", &|rig| {
        let root = rig.tree.nodes.root_word().inner(rig.tree.nodes.root_word().root().node());
        let (one, other) = (root.child(0), root.child(1));
        root.children[0].store(other, Relaxed);
        root.children[1].store(one, Relaxed);
    });
    noticed("separators do not ascend", &|rig| {
        let root = rig.tree.nodes.root_word().inner(rig.tree.nodes.root_word().root().node());
        root.separators[1].store(root.own_separator(0).word(), Relaxed);
    });
    noticed("cannot be read", &|rig| rig.mark_dead(*rig.map.values().next().unwrap()));
}

/// If the first bytes decide a key's place, its item is not read, whether or not they are the whole key.
#[test]
fn inline_bytes_that_suffice_spare_the_item() {
    let rig = Rig::new(40);
    let unreadable = Items::default();
    let change = Change { key: KeyStart::whole(b"12345678"), edit: Edit::Insert(position(1)) };
    rig.tree.apply(&unreadable, &[change], |_, result| assert_eq!(result, Ok(())));
    let change = Change { key: KeyStart::new(b"12345679", 100), edit: Edit::Insert(position(2)) };
    let mut answers = 0;
    rig.tree.nodes.apply_one(&unreadable, &change).map(|()| answers += 1).unwrap();
    assert_eq!(answers, 1);
}
