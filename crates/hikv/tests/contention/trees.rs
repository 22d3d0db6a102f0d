//! Trees that are cleared, renamed and swapped while threads write to them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hikv::{Error, Options, Tree, WriteBatch};

use crate::place::Placed;

const WRITER_COUNT: usize = 3;
const KEYS_OF_A_WRITER: u64 = 50;

/// The last number that each writer has put.
type Acknowledged = [AtomicU64; WRITER_COUNT];

/// Puts ascending numbers under some keys, singly and in batches, until `is_over`.
fn write(tree: &Tree, writer: usize, acknowledged: &Acknowledged, is_over: &AtomicBool) {
    let key = |number: u64| format!("{writer} {}", number % KEYS_OF_A_WRITER);
    let mut number = 1;
    while !is_over.load(Ordering::Relaxed) {
        if number % 3 == 0 {
            tree.write(WriteBatch::new().put(key(number), number.to_le_bytes())).unwrap();
        } else {
            tree.put(key(number), number.to_le_bytes()).unwrap();
        }
        acknowledged[writer].store(number, Ordering::SeqCst);
        number += 1;
    }
}

/// Checks that every key was put after the numbers in `before`; returns the number of keys.
fn look(tree: &Tree, before: &[u64], round: u32) -> u64 {
    let mut seen_count = 0;
    for (writer, &before) in before.iter().enumerate() {
        for number in 0..KEYS_OF_A_WRITER {
            let Some(value) = tree.get(format!("{writer} {number}")).unwrap() else { continue };
            let value = u64::from_le_bytes(value[..].try_into().unwrap());
            assert!(value > before, "round {round}: {value} of writer {writer} survived a clear after {before}");
            seen_count += 1;
        }
    }
    seen_count
}

/// No key that was acknowledged before a clear is there after it, and the tree takes writes again.
fn clear_rounds(count: u32) {
    let placed = Placed::open(&Options::new().tuning(|tuning| tuning.partition_count(8)));
    let store = &placed.store;
    let (tree, acknowledged, is_over) = (store.tree("t").unwrap(), Acknowledged::default(), AtomicBool::new(false));
    let mut seen_count = 0;
    thread::scope(|scope| {
        for writer in 0..WRITER_COUNT {
            let (tree, acknowledged, is_over) = (&tree, &acknowledged, &is_over);
            scope.spawn(move || write(tree, writer, acknowledged, is_over));
        }
        for round in 0..count {
            let before: Vec<u64> = acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect();
            tree.clear().unwrap();
            // Once at once, and once after another write.
            seen_count += look(&tree, &before, round);
            let then: Vec<u64> = acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect();
            let is_changed = || acknowledged.iter().zip(&then).any(|(now, then)| now.load(Ordering::SeqCst) > *then);
            while !is_changed() {
                thread::yield_now();
            }
            seen_count += look(&tree, &before, round);
            let (from, to) = if round % 2 == 0 { ("t", "u") } else { ("u", "t") };
            store.rename_tree(from, to).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(seen_count > 0, "no writer wrote between a clear and the look after it");
    tree.clear().unwrap();
    assert_eq!(tree.len().unwrap(), 0);
    while store.background().step().unwrap().is_more {}
    let mut left = 0;
    hikv::FrontEnd::of(store).stored().for_each(|_, _| left += 1).unwrap();
    assert_eq!(left, 3, "only the head and the tree's two records are left");
    placed.assert_sound();
}

#[test]
fn cleared_tree_keeps_no_key() {
    clear_rounds(300);
}

#[test]
#[ignore = "minutes"]
fn cleared_tree_keeps_no_key_for_long() {
    clear_rounds(20_000);
}

/// A writer of a dropped tree gets an error, and no key of it comes into the next tree of the name.
#[test]
fn dropped_tree_takes_no_key() {
    let placed = Placed::open(&Options::new().tuning(|tuning| tuning.partition_count(8)));
    let store = &placed.store;
    for round in 0..100u32 {
        let (old, other) = (store.tree("t").unwrap(), store.tree("other").unwrap());
        assert_eq!(old.len().unwrap(), 0, "round {round}");
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut number = 0u32;
                loop {
                    // In turns, and together.
                    let written = match number % 2 {
                        0 => old.put(number.to_le_bytes(), "v"),
                        _ => other.write(WriteBatch::new().put("last", number.to_le_bytes()).tree(&old).put("k", "v")),
                    };
                    match written {
                        Ok(()) => number += 1,
                        Err(Error::NoSuchTree { .. }) => return number,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            while old.is_empty().unwrap() {
                thread::yield_now();
            }
            store.drop_tree("t").unwrap();
            let number = writer.join().unwrap();
            let last = other.get("last").unwrap().map(|value| u32::from_le_bytes(value[..].try_into().unwrap()));
            let expected = (0..number).rev().find(|number| number % 2 == 1);
            assert_eq!(last.filter(|_| expected.is_some()), expected, "the refused batch changed the other tree");
            other.clear().unwrap();
        });
    }
    while store.background().step().unwrap().is_more {}
    placed.assert_sound();
}

/// Nobody waits for the end of a thread that waits for the own one.
#[test]
fn trees_are_created_and_renamed_during_clears() {
    let placed = Placed::open(&Options::new());
    let (store, is_over) = (&placed.store, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                store.tree(format!("t{}", number % 3)).unwrap();
                match store.rename_tree("t0", "t9") {
                    Ok(()) | Err(Error::NoSuchTree { .. } | Error::TreeExists { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let cleared = (0..300).try_for_each(|_| hikv::FrontEnd::of(store).stored().clear());
        is_over.store(true, Ordering::Relaxed);
        cleared.unwrap();
    });
    while store.background().step().unwrap().is_more {}
    placed.assert_sound();
}
