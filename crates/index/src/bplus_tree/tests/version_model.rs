//! Explores every interleaving of readers and writers of a version, with the reorderings that the memory model
//! allows. Broken variants that lack a fence, or check in the wrong order, must be caught.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use word::Word;
use word::model::{Weakened, Weakening};

use super::super::version::Version;

/// Has all fences.
struct All;
struct NoReader;
struct NoWriter;

impl Weakening for All {}

impl Weakening for NoReader {
    fn has_fence(asked: Ordering) -> bool {
        asked != Ordering::Acquire
    }
}

impl Weakening for NoWriter {
    fn has_fence(asked: Ordering) -> bool {
        asked != Ordering::Release
    }
}

fn version<F: Weakening>() -> Version<Weakened<F>> {
    Version::new(Weakened::new(0))
}

/// Two words that are always equal when no thread holds the lock.
struct Node<F> {
    version: Version<Weakened<F>>,
    words: [AtomicU64; 2],
}

impl<F: Weakening> Node<F> {
    fn new() -> Arc<Node<F>> {
        Arc::new(Node { version: version(), words: [AtomicU64::new(0), AtomicU64::new(0)] })
    }

    fn read(&self) {
        let Some(seen) = self.version.try_read() else { return };
        let [one, other] = [0, 1].map(|word: usize| self.words[word].load(Ordering::Relaxed));
        if self.version.is(seen) {
            assert_eq!(one, other, "a torn read passed its check");
        }
    }

    /// Adds one to the value that was read before the lock; returns true if no other thread interfered.
    fn write(&self) -> bool {
        let Some(seen) = self.version.try_read() else { return false };
        let before = self.words[0].load(Ordering::Relaxed);
        let Some(_lock) = self.version.try_lock(seen) else { return false };
        self.words.iter().for_each(|word| word.store(before + 1, Ordering::Relaxed));
        true
    }
}

fn reader_beside_writer<F: Weakening>() {
    loom::model(|| {
        let node = Node::<F>::new();
        let writer = Arc::clone(&node);
        let writer = thread::spawn(move || writer.write());
        node.read();
        writer.join().unwrap();
    });
}

#[test]
fn validated_reads_are_consistent() {
    reader_beside_writer::<All>();
}

#[test]
#[should_panic(expected = "a torn read passed its check")]
fn check_without_fence_is_caught() {
    reader_beside_writer::<NoReader>();
}

#[test]
#[should_panic(expected = "a torn read passed its check")]
fn lock_without_fence_is_caught() {
    reader_beside_writer::<NoWriter>();
}

#[test]
fn lock_from_version_proves_no_change() {
    loom::model(|| {
        let node = Node::<All>::new();
        let others = [Arc::clone(&node), Arc::clone(&node)].map(|node| thread::spawn(move || node.write()));
        let written = others.map(|other| u64::from(other.join().unwrap())).iter().sum::<u64>();
        assert_eq!(node.words[0].load(Ordering::Relaxed), written, "a write was lost");
    });
}

/// A parent with the first key of its right child, and two children. A split moves key 1 from the left child to the
/// right one.
struct Family {
    parent: Version<Weakened<All>>,
    first_of_right: AtomicU64,
    left: Version<Weakened<All>>,
    left_has_key: AtomicU64,
    right_has_key: AtomicU64,
}

impl Family {
    fn split(&self) {
        let parent = self.parent.try_lock(self.parent.try_read().unwrap()).unwrap();
        let left = self.left.try_lock(self.left.try_read().unwrap()).unwrap();
        self.right_has_key.store(1, Ordering::Relaxed);
        self.first_of_right.store(1, Ordering::Relaxed);
        self.left_has_key.store(0, Ordering::Relaxed);
        drop((left, parent));
    }

    /// Searches for key 1. The broken variant checks the parent before it notes the child's version.
    fn find(&self, checks_too_early: bool) -> Option<bool> {
        let seen = self.parent.try_read()?;
        if self.first_of_right.load(Ordering::Relaxed) <= 1 {
            return self.parent.is(seen).then(|| self.right_has_key.load(Ordering::Relaxed) == 1);
        }
        let is_early_right = self.parent.is(seen);
        let child = self.left.try_read()?;
        if !(if checks_too_early { is_early_right } else { self.parent.is(seen) }) {
            return None;
        }
        let has_key = self.left_has_key.load(Ordering::Relaxed) == 1;
        self.left.is(child).then_some(has_key)
    }
}

fn find_during_split(checks_too_early: bool) {
    loom::model(move || {
        let word = AtomicU64::new;
        let family = Arc::new(Family {
            parent: version(),
            first_of_right: word(2),
            left: version(),
            left_has_key: word(1),
            right_has_key: word(0),
        });
        let splitter = Arc::clone(&family);
        let splitter = thread::spawn(move || splitter.split());
        assert_ne!(family.find(checks_too_early), Some(false), "a key got lost on its way");
        splitter.join().unwrap();
    });
}

#[test]
fn search_meets_key_that_moves() {
    find_during_split(false);
}

#[test]
#[should_panic(expected = "a key got lost on its way")]
fn parent_checked_too_early_is_caught() {
    find_during_split(true);
}
