//! Trees that grow and shrink.

use super::keys::{FAMILY_COUNT, FAMILY_KEY_COUNT, key};
use super::rig::Rig;

/// Returns keys of sixteen hex digits, enough for a tree of several levels.
fn many(count: usize) -> Vec<&'static [u8]> {
    let key = |number: usize| format!("{:016x}", (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..count).map(|number| &*key(number).into_bytes().leak()).collect()
}

#[test]
fn deep_tree_grows_and_shrinks() {
    let (mut rig, keys) = (Rig::new(40), many(40_000));
    for keys in keys.chunks(1000) {
        rig.put(keys);
    }
    rig.check();
    assert!(rig.tree.nodes.root_word().root().height() >= 3);
    for keys in keys.chunks(997).rev() {
        rig.remove(keys);
    }
    rig.check();
    assert_eq!(rig.tree.nodes.root_word().root().height(), 0, "an empty tree is one leaf");
}

/// Runs laps over `keys`, each of which leaves an empty tree; all together need at most twice the memory of the
/// first.
fn laps(count: usize, keys: &[&'static [u8]]) {
    laps_with(count, keys, |rig, keys| rig.remove(keys));
}

fn laps_with(count: usize, keys: &[&'static [u8]], empty: fn(&mut Rig, &[&'static [u8]])) {
    let (mut rig, mut first_bytes) = (Rig::new(40), None);
    for lap in 0..count {
        rig.put(keys);
        empty(&mut rig, keys);
        // Threads of other tests may be pinned.
        while rig.tree.nodes.memory().waiting_count() > 0 {
            rig.tree.collect();
        }
        let first_bytes = *first_bytes.get_or_insert(rig.tree.dram_bytes());
        assert!(rig.tree.dram_bytes() <= 2 * first_bytes, "lap {lap} needed twice the memory");
    }
    rig.check();
}

#[test]
fn freed_nodes_are_reused() {
    laps(5, &many(20_000));
}

#[test]
fn separators_that_are_freed_are_used_again() {
    let key = |key: &&[u8]| &*[&[b'k'; 3000][..], key].concat().leak();
    laps(6, &many(8000).iter().map(key).collect::<Vec<_>>());
}

#[test]
fn roots_that_are_freed_are_used_again() {
    laps(300, &many(80));
}

#[test]
fn cleared_nodes_are_reused() {
    let clear = |rig: &mut Rig, _: &[&'static [u8]]| {
        rig.tree.clear().unwrap();
        rig.map.clear();
    };
    // With few keys, the root is a third of all nodes; with long keys, the separators use most memory.
    let long = |key: &&[u8]| &*[&[b'k'; 3000][..], key].concat().leak();
    laps_with(300, &many(80), clear);
    laps_with(6, &many(4000).iter().map(long).collect::<Vec<_>>(), clear);
}

#[test]
fn pinned_readers_nodes_are_not_reused() {
    let (mut rig, keys) = (Rig::new(40), many(20_000));
    let _pin = epoch::pin();
    rig.put(&keys);
    let first_bytes = rig.tree.dram_bytes();
    for lap in 2..6 {
        rig.remove(&keys);
        assert!(!rig.tree.collect());
        rig.put(&keys);
        // Half, because leaves that were not merged are filled again.
        assert!(rig.tree.dram_bytes() > lap * first_bytes / 2, "memory was reused under a pin");
    }
}

#[test]
fn ascending_keys_fill_their_leaves() {
    for shared in ["", "a prefix that all keys share "] {
        let mut rig = Rig::new(40);
        let key = |number: usize| &*format!("{shared}{number:012}").into_bytes().leak();
        let keys: Vec<&'static [u8]> = (0..30_000).map(key).collect();
        rig.put(&keys);
        rig.check();
        assert!(rig.tree.dram_bytes() < 22 * 30_000 + (1 << 19), "{} bytes", rig.tree.dram_bytes());
    }
}

#[test]
fn key_families_churn_independently() {
    let mut rig = Rig::new(40);
    for step in [1, 7, 509] {
        for family in 0..FAMILY_COUNT {
            rig.put(&(0..FAMILY_KEY_COUNT).map(|number| key(family, number * step)).collect::<Vec<_>>());
        }
        rig.check();
        for family in 0..FAMILY_COUNT {
            rig.remove(&(0..FAMILY_KEY_COUNT - 100).map(|number| key(family, number * step)).collect::<Vec<_>>());
        }
        rig.check();
    }
}
