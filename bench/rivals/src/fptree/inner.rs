//! The inner nodes: a B+tree in DRAM from greatest keys to leaves.
//!
//! Key `i` of a node is the greatest that child `i` may hold; the last child has no bound. Nodes are split and never
//! removed: a node whose leaves were unlinked keeps at least its first child.
//!
//! # Concurrency
//! Optimistic lock coupling, as in HiKV's own tree. Readers take no lock: they note a node's version before they read
//! it, note the child's version before they check the node's, and begin again if it has changed. A writer locks from
//! the version that it noted. An insert that meets a full node splits it, under the locks of its parent and itself,
//! and begins again. Locks are taken from the root down, and only tried.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem::{Backoff, Offset};

use crate::key::Key;
use crate::version::Version;

/// Keys of a node.
const KEY_COUNT: usize = 63;
/// Children of a node that recovery builds: three quarters.
const BUILT_CHILD_COUNT: usize = 48;

#[repr(align(64))]
pub(super) struct Node {
    version: AtomicU64,
    /// 0 for nodes whose children are leaves.
    level: u32,
    count: AtomicU64,
    keys: [[AtomicU64; 2]; KEY_COUNT],
    /// Offsets of leaves at level 0, else exposed addresses of nodes.
    children: [AtomicU64; KEY_COUNT + 1],
}

impl Node {
    fn new(level: u32) -> Node {
        Node {
            version: AtomicU64::new(Version::FIRST.0),
            level,
            count: AtomicU64::new(0),
            keys: [const { [const { AtomicU64::new(0) }; 2] }; KEY_COUNT],
            children: [const { AtomicU64::new(0) }; KEY_COUNT + 1],
        }
    }

    #[inline(always)]
    fn version(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn is_at(&self, version: Version) -> bool {
        self.version() == version
    }

    fn stable_version(&self) -> Version {
        let mut backoff = Backoff::short();
        loop {
            let version = self.version();
            if version.is_stable() {
                return version;
            }
            backoff.relax();
        }
    }

    fn try_lock(&self, version: Version) -> bool {
        let (from, to) = (version.0, version.locked().0);
        self.version.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn unlock(&self) {
        self.version.store(self.version().unlocked().0, Ordering::Release);
    }

    /// Returns the number of keys, which during a change may be any that fits.
    #[inline(always)]
    fn count(&self) -> usize {
        (self.count.load(Ordering::Acquire) as usize).min(KEY_COUNT)
    }

    #[inline(always)]
    fn key(&self, i: usize) -> Key {
        Key::of_words([self.keys[i][0].load(Ordering::Acquire), self.keys[i][1].load(Ordering::Acquire)])
    }

    fn set_key(&self, i: usize, key: Key) {
        for (to, word) in self.keys[i].iter().zip(key.words()) {
            to.store(word, Ordering::Release);
        }
    }

    #[inline(always)]
    fn child(&self, i: usize) -> u64 {
        self.children[i].load(Ordering::Acquire)
    }

    fn set_child(&self, i: usize, child: u64) {
        self.children[i].store(child, Ordering::Release);
    }

    fn set_count(&self, count: usize) {
        self.count.store(count as u64, Ordering::Release);
    }

    /// Returns the index of the child for `key`.
    #[inline(always)]
    fn index_of(&self, key: Key) -> usize {
        let (mut first, mut count) = (0, self.count());
        while count > 0 {
            let half = count / 2;
            let is_above = self.key(first + half) < key;
            (first, count) = if is_above { (first + half + 1, count - half - 1) } else { (first, half) };
        }
        first
    }

    /// Divides child `index` at `key`: the new child `right` holds the keys above. The node is locked and not full.
    fn insert(&self, index: usize, key: Key, right: u64) {
        let count = self.count();
        for i in (index..count).rev() {
            self.set_key(i + 1, self.key(i));
            self.set_child(i + 2, self.child(i + 1));
        }
        self.set_key(index, key);
        self.set_child(index + 1, right);
        self.set_count(count + 1);
    }

    /// Removes child `index`, not the first, whose keys become those of the child before. The node is locked.
    fn remove(&self, index: usize) {
        let count = self.count();
        for i in index..count {
            self.set_key(i - 1, self.key(i));
            self.set_child(i, self.child(i + 1));
        }
        self.set_count(count - 1);
    }
}

/// A leaf's place in its parent, as of one version of the parent.
pub(super) struct Spot<'a> {
    node: &'a Node,
    version: Version,
    index: usize,
    /// The leaf.
    pub(super) leaf: Offset,
}

impl<'a> Spot<'a> {
    /// Returns true if the leaf is still the one for the key.
    #[inline(always)]
    pub(super) fn is_current(&self) -> bool {
        self.node.is_at(self.version)
    }

    /// Locks the parent; returns nothing if it has changed.
    pub(super) fn try_lock(self) -> Option<LockedParent<'a>> {
        self.node.try_lock(self.version).then_some(LockedParent { node: self.node, index: self.index })
    }
}

/// The locked parent of a leaf.
pub(super) struct LockedParent<'a> {
    node: &'a Node,
    index: usize,
}

impl LockedParent<'_> {
    /// Returns the leaf before, if it has the same parent.
    pub(super) fn left_sibling(&self) -> Option<Offset> {
        self.index.checked_sub(1).map(|index| Offset(self.node.child(index)))
    }

    /// Removes the leaf, which has a sibling on the left.
    pub(super) fn remove_leaf(&self) {
        self.node.remove(self.index);
    }
}

impl Drop for LockedParent<'_> {
    fn drop(&mut self) {
        self.node.unlock();
    }
}

/// The inner nodes of a tree.
pub(super) struct Inner {
    root: AtomicPtr<Node>,
    /// All nodes, to be freed together.
    nodes: Mutex<Vec<NonNull<Node>>>,
}

// SAFETY: nodes consist of atomics and constants, and are freed only with the tree.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Inner {
    /// Builds the inner nodes over leaves in ascending order. The key of a leaf is the greatest that it may hold; that
    /// of the last one is ignored.
    pub(super) fn build(leaves: &[(Key, Offset)]) -> Inner {
        let inner = Inner { root: AtomicPtr::new(ptr::null_mut()), nodes: Mutex::default() };
        let mut level = 0;
        let mut children: Vec<(Key, u64)> = leaves.iter().map(|(key, leaf)| (*key, leaf.0)).collect();
        loop {
            let parents: Vec<(Key, u64)> = children
                .chunks(BUILT_CHILD_COUNT)
                .map(|children| (children[children.len() - 1].0, inner.build_node(level, children)))
                .collect();
            if let [(_, root)] = parents[..] {
                inner.root.store(ptr::with_exposed_provenance_mut(root as usize), Ordering::Release);
                return inner;
            }
            (children, level) = (parents, level + 1);
        }
    }

    fn build_node(&self, level: u32, children: &[(Key, u64)]) -> u64 {
        let (node, address) = self.allocate(level);
        for (i, (key, child)) in children.iter().enumerate() {
            node.set_child(i, *child);
            if i + 1 < children.len() {
                node.set_key(i, *key);
            }
        }
        node.set_count(children.len() - 1);
        address
    }

    fn allocate(&self, level: u32) -> (&Node, u64) {
        let node = NonNull::from(Box::leak(Box::new(Node::new(level))));
        self.nodes.lock().push(node);
        // SAFETY: nodes live as long as the tree.
        (unsafe { node.as_ref() }, node.as_ptr().expose_provenance() as u64)
    }

    /// Returns the node at an address that was read from a node, whose version was checked since.
    #[inline(always)]
    fn node(&self, address: u64) -> &Node {
        // SAFETY: the address is that of a node, which lives as long as the tree.
        unsafe { &*ptr::with_exposed_provenance(address as usize) }
    }

    #[inline(always)]
    fn root(&self) -> &Node {
        // SAFETY: as above.
        unsafe { &*self.root.load(Ordering::Acquire) }
    }

    fn is_root(&self, node: &Node) -> bool {
        ptr::eq(self.root.load(Ordering::Acquire), node)
    }

    /// Returns the bytes of all nodes.
    pub(super) fn dram_bytes(&self) -> u64 {
        (self.nodes.lock().len() * size_of::<Node>()) as u64
    }

    /// Finds the leaf for `key`.
    #[inline(always)]
    pub(super) fn locate(&self, key: Key) -> Spot<'_> {
        loop {
            if let Some(spot) = self.try_locate(key) {
                return spot;
            }
        }
    }

    #[inline(always)]
    fn try_locate(&self, key: Key) -> Option<Spot<'_>> {
        let (mut node, mut version) = self.stable_root()?;
        loop {
            let index = node.index_of(key);
            let child = node.child(index);
            if !node.is_at(version) {
                return None;
            }
            if node.level == 0 {
                return Some(Spot { node, version, index, leaf: Offset(child) });
            }
            let next = self.node(child);
            let next_version = next.stable_version();
            if !node.is_at(version) {
                return None;
            }
            (node, version) = (next, next_version);
        }
    }

    /// Returns the root and its version, noted while it was the root.
    fn stable_root(&self) -> Option<(&Node, Version)> {
        let root = self.root();
        let version = root.stable_version();
        self.is_root(root).then_some((root, version))
    }

    /// Divides the leaf for `key` at `key`: the leaf `right` holds the keys above. The caller has locked both leaves.
    pub(super) fn insert(&self, key: Key, right: Offset) {
        let mut backoff = Backoff::short();
        while self.try_insert(key, right).is_none() {
            backoff.relax();
        }
    }

    /// Returns nothing if the insert must begin again.
    fn try_insert(&self, key: Key, right: Offset) -> Option<()> {
        let (mut node, mut version) = self.stable_root()?;
        let mut parent: Option<(&Node, Version)> = None;
        loop {
            if node.count() == KEY_COUNT {
                self.split(parent, (node, version));
                return None;
            }
            let index = node.index_of(key);
            let child = node.child(index);
            if node.level == 0 {
                return node.try_lock(version).then(|| {
                    node.insert(index, key, right.0);
                    node.unlock();
                });
            }
            if !node.is_at(version) {
                return None;
            }
            let next = self.node(child);
            let next_version = next.stable_version();
            if !node.is_at(version) {
                return None;
            }
            parent = Some((node, version));
            (node, version) = (next, next_version);
        }
    }

    /// Splits a full node, unless it or its parent has changed.
    #[cold]
    fn split(&self, parent: Option<(&Node, Version)>, (node, version): (&Node, Version)) {
        if parent.is_some_and(|(parent, version)| !parent.try_lock(version)) {
            return;
        }
        if node.try_lock(version) {
            self.split_locked(parent.map(|(parent, _)| parent), node);
            node.unlock();
        }
        if let Some((parent, _)) = parent {
            parent.unlock();
        }
    }

    fn split_locked(&self, parent: Option<&Node>, node: &Node) {
        let (middle, count) = (KEY_COUNT / 2, node.count());
        let (right, address) = self.allocate(node.level);
        for i in middle + 1..count {
            right.set_key(i - middle - 1, node.key(i));
        }
        for i in middle + 1..=count {
            right.set_child(i - middle - 1, node.child(i));
        }
        right.set_count(count - middle - 1);
        node.set_count(middle);
        let separator = node.key(middle);
        if let Some(parent) = parent {
            return parent.insert(parent.index_of(separator), separator, address);
        }
        let (root, root_address) = self.allocate(node.level + 1);
        root.set_child(0, ptr::from_ref(node).expose_provenance() as u64);
        root.insert(0, separator, address);
        self.root.store(ptr::with_exposed_provenance_mut(root_address as usize), Ordering::Release);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for node in self.nodes.get_mut().drain(..) {
            // SAFETY: each node was leaked from a box once, and the tree is not used any more.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}
