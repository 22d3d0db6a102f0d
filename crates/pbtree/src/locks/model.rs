//! Model checking: every interleaving of threads that lock nodes, with the reorderings that the memory model allows.
//! Broken variants must be caught: an unlock that is no release, a parent released before the child is locked, a
//! root's word read outside the tree lock, a return to a node without checking its version, a tree lock of which only
//! one stripe is taken, and a node that becomes the root while its own lock is held.

extern crate std;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use word::Word;
use word::model::{NoRelease, Unchanged, Weakened, Weakening, explore, is_caught};

use super::latch::{Latch, Mode};

/// The number of preemptions within which each broken variant is caught.
const PREEMPTION_COUNT: usize = 3;

/// The part that a variant leaves out.
trait Variant: Weakening {
    const COUPLES: bool = true;
    const LOCKS_TREE: bool = true;
    const COMPARES: bool = true;
    const LOCKS_ALL_STRIPES: bool = true;
    const LOCKS_HEIR: bool = true;
}

struct LetsGoEarly;
struct ReadsOutside;
struct GoesBackBlindly;
struct LocksOneStripe;
struct LeavesHeir;

impl Weakening for LetsGoEarly {}
impl Weakening for ReadsOutside {}
impl Weakening for GoesBackBlindly {}
impl Weakening for LocksOneStripe {}
impl Weakening for LeavesHeir {}

impl Variant for Unchanged {}

impl Variant for NoRelease {}

impl Variant for LetsGoEarly {
    const COUPLES: bool = false;
}

impl Variant for ReadsOutside {
    const LOCKS_TREE: bool = false;
}

impl Variant for GoesBackBlindly {
    const COMPARES: bool = false;
}

impl Variant for LocksOneStripe {
    const LOCKS_ALL_STRIPES: bool = false;
}

impl Variant for LeavesHeir {
    const LOCKS_HEIR: bool = false;
}

/// A node: its lock, and a number that is 0 once the node is freed.
struct Node<T: Variant> {
    latch: Latch<Weakened<T>>,
    number: UnsafeCell<u64>,
}

// SAFETY: the number is accessed only under the latch; the models check that.
unsafe impl<T: Variant> Sync for Node<T> {}

impl<T: Variant> Node<T> {
    fn new(number: u64) -> Node<T> {
        Node { latch: Latch(Weakened::new(0)), number: UnsafeCell::new(number) }
    }

    fn lock(&self, mode: Mode) {
        while !self.latch.try_lock(mode) {
            if mode == Mode::Exclusive {
                self.latch.want();
            }
            thread::yield_now();
        }
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller has locked the node; loom detects it if that does not suffice.
        self.number.with(|number| unsafe { *number })
    }

    fn write(&self, new: u64) {
        // SAFETY: the caller has locked it exclusively; loom detects it if that does not suffice.
        self.number.with_mut(|number| unsafe { *number = new });
    }
}

/// Two writers increment, and a reader checks.
fn counted<T: Variant>() {
    let node = Arc::new(Node::<T>::new(1));
    let add = |node: Arc<Node<T>>| {
        move || {
            node.lock(Mode::Exclusive);
            node.write(node.read() + 1);
            node.latch.unlock(Mode::Exclusive);
        }
    };
    let writer = thread::spawn(add(Arc::clone(&node)));
    add(Arc::clone(&node))();
    node.lock(Mode::Shared);
    assert!((2..=3).contains(&node.read()));
    node.latch.unlock(Mode::Shared);
    writer.join().unwrap();
    node.lock(Mode::Shared);
    assert_eq!(node.read(), 3);
}

/// The tree lock's number selects one of two leaves as the root. A writer selects the other leaf and frees the first
/// one.
fn root_replaced<T: Variant>() {
    let tree = Arc::new((Node::<T>::new(1), [Node::<T>::new(10), Node::<T>::new(20)]));
    let theirs = Arc::clone(&tree);
    let writer = thread::spawn(move || {
        let (root, leaves) = &*theirs;
        root.lock(Mode::Exclusive);
        root.write(2);
        root.latch.unlock(Mode::Exclusive);
        leaves[0].lock(Mode::Exclusive);
        leaves[0].write(0);
        leaves[0].latch.unlock(Mode::Exclusive);
    });
    let (root, leaves) = &*tree;
    if T::LOCKS_TREE {
        root.lock(Mode::Shared);
    }
    let leaf = &leaves[root.read() as usize - 1];
    if !T::COUPLES {
        root.latch.unlock(Mode::Shared);
    }
    leaf.lock(Mode::Shared);
    if T::COUPLES && T::LOCKS_TREE {
        root.latch.unlock(Mode::Shared);
    }
    assert!(leaf.read() > 0, "a reader came to a leaf that was freed");
    leaf.latch.unlock(Mode::Shared);
    writer.join().unwrap();
}

/// A reader returns to a node that it has seen; a writer changes and then frees it, each time exclusively.
fn gone_back_to<T: Variant>() {
    let node = Arc::new(Node::<T>::new(1));
    let theirs = Arc::clone(&node);
    let writer = thread::spawn(move || {
        for number in [2, 0] {
            theirs.lock(Mode::Exclusive);
            theirs.write(number);
            theirs.latch.unlock(Mode::Exclusive);
        }
    });
    let look = || {
        node.lock(Mode::Shared);
        let seen = (node.latch.version(), node.read());
        node.latch.unlock(Mode::Shared);
        seen
    };
    let (first, again) = (look(), look());
    if !T::COMPARES || first.0 == again.0 {
        assert_eq!(first.1, again.1, "a reader went back to a node that was changed");
    }
    assert!(first.0 == again.0 || first.1 != again.1, "a node that nobody had alone is another one");
    writer.join().unwrap();
}

/// A writer changes an inner root, which a reader shares by the second of two stripes.
fn root_changed<T: Variant>() {
    let tree = Arc::new(([Node::<T>::new(1), Node::<T>::new(1)], Node::<T>::new(10)));
    let theirs = Arc::clone(&tree);
    let writer = thread::spawn(move || {
        let (stripes, root) = &*theirs;
        let taken = if T::LOCKS_ALL_STRIPES { &stripes[..] } else { &stripes[..1] };
        taken.iter().for_each(|stripe| stripe.lock(Mode::Exclusive));
        root.write(11);
        taken.iter().for_each(|stripe| stripe.latch.unlock(Mode::Exclusive));
    });
    let (stripes, root) = &*tree;
    stripes[1].lock(Mode::Shared);
    assert!((10..=11).contains(&root.read()));
    stripes[1].latch.unlock(Mode::Shared);
    writer.join().unwrap();
}

/// The tree lock's number is 1 while the node is the root's only child, and 2 once it is the root. A writer that found
/// the node as a child changes it. Another thread makes it the root, and reads it as the root.
fn child_becomes_root<T: Variant>() {
    let tree = Arc::new((Node::<T>::new(1), Node::<T>::new(10)));
    let theirs = Arc::clone(&tree);
    let writer = thread::spawn(move || {
        let (root, node) = &*theirs;
        root.lock(Mode::Shared);
        let is_child = root.read() == 1;
        if is_child {
            node.lock(Mode::Exclusive);
        }
        root.latch.unlock(Mode::Shared);
        if is_child {
            node.write(11);
            node.latch.unlock(Mode::Exclusive);
        }
    });
    let (root, node) = &*tree;
    root.lock(Mode::Exclusive);
    if T::LOCKS_HEIR {
        node.lock(Mode::Exclusive);
    }
    root.write(2);
    root.latch.unlock(Mode::Exclusive);
    if T::LOCKS_HEIR {
        node.latch.unlock(Mode::Exclusive);
    }
    root.lock(Mode::Shared);
    assert!((10..=11).contains(&node.read()));
    root.latch.unlock(Mode::Shared);
    writer.join().unwrap();
}

#[test]
fn tree_lock_guards_an_inner_root() {
    explore(PREEMPTION_COUNT, root_changed::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, root_changed::<LocksOneStripe>));
    explore(PREEMPTION_COUNT, child_becomes_root::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, child_becomes_root::<LeavesHeir>));
}

#[test]
fn version_shows_node_changes() {
    explore(PREEMPTION_COUNT, gone_back_to::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, gone_back_to::<GoesBackBlindly>));
}

#[test]
fn locks_exclude_and_publish() {
    explore(PREEMPTION_COUNT, counted::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, counted::<NoRelease>));
}

#[test]
fn coupled_descent_meets_no_freed_node() {
    explore(PREEMPTION_COUNT, root_replaced::<Unchanged>);
    assert!(is_caught(PREEMPTION_COUNT, root_replaced::<LetsGoEarly>));
    assert!(is_caught(PREEMPTION_COUNT, root_replaced::<ReadsOutside>));
}
