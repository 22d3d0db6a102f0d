//! The descent from the root to a leaf, without a lock.
//!
//! Each step notes the version of the child and then checks that of the parent. So the child, at the noted version,
//! was the child that the parent's separators indicate, and its keys are between those two. The range of a node
//! changes only under its own lock (a split or a merge locks both the node and the parent). So while the leaf has
//! the noted version, its range is the one that was found, and the fences below are those of the leaf.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use pmem::{LINE_BYTES, arch};

use super::Keys;
use super::inner::Seek;
use super::layout::{Inner, Leaf};
use super::target::Stop;
use super::version::ObservedVersion;

/// A node, with the version that was noted.
pub(super) struct At<'t, N> {
    pub(super) node: &'t N,
    pub(super) seen: ObservedVersion,
}

impl<N> Clone for At<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for At<'_, N> {}

impl At<'_, Leaf> {
    #[inline(always)]
    pub(super) fn check<E>(&self) -> Result<(), Stop<E>> {
        if self.node.version.is(self.seen) { Ok(()) } else { Err(Stop::Again) }
    }
}

/// An inner node, and the index of one of its children or separators.
#[derive(Clone, Copy)]
pub(super) struct Step<'t> {
    pub(super) inner: At<'t, Inner>,
    pub(super) index: usize,
}

impl Step<'_> {
    /// Returns the separator of that index, if the node is unchanged.
    pub(super) fn separator_bytes<E>(&self) -> Result<Vec<u8>, Stop<E>> {
        Ok(self.inner.node.separator(self.inner.seen, self.index)?.to_vec())
    }
}

/// The path by which a node was reached.
#[derive(Clone, Copy, Default)]
pub(super) struct Path<'t> {
    /// The parent, and the index of the node among its children; `None` for the root.
    pub(super) parent: Option<Step<'t>>,
    /// The separator that is not above the node's keys; `None` if the node is the leftmost of its level.
    pub(super) low: Option<Step<'t>>,
    /// The separator above all of the node's keys; `None` if the node is the rightmost of its level.
    pub(super) high: Option<Step<'t>>,
}

/// A prefetched leaf that was not read yet. Its address was read from its parent, or from the root word, and was
/// valid at that time.
#[derive(Clone, Copy)]
pub(super) struct Near<'t> {
    pub(super) root: Root,
    pub(super) parent: Option<At<'t, Inner>>,
    pub(super) node: *mut u8,
}

/// The root: a pointer whose low bits, free by alignment, hold the height, the number of levels of inner nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Root(*mut u8);

const HEIGHT_BITS: usize = 6;
const HEIGHT: usize = (1 << HEIGHT_BITS) - 1;

impl Root {
    pub(super) fn new(node: *mut u8, height: usize) -> Root {
        assert!(height <= HEIGHT && node.addr() & HEIGHT == 0, "nodes are aligned, and no tree is so high");
        Root(node.map_addr(|address| address | height))
    }

    pub(super) fn height(self) -> usize {
        self.0.addr() & HEIGHT
    }

    pub(super) fn node(self) -> *mut u8 {
        self.0.map_addr(|address| address & !HEIGHT)
    }
}

const _: () = assert!(align_of::<Leaf>() == 1 << HEIGHT_BITS && align_of::<Inner>() == 1 << HEIGHT_BITS);

/// The tree as readers reach it: the word that names the root.
#[derive(Debug)]
pub(super) struct RootWord {
    /// See [`Root`].
    root: AtomicPtr<u8>,
}

impl RootWord {
    pub(super) fn new(root: Root) -> RootWord {
        RootWord { root: AtomicPtr::new(root.0) }
    }

    #[inline(always)]
    pub(super) fn root(&self) -> Root {
        Root(self.root.load(Ordering::Acquire))
    }

    /// Replaces the root, and returns the old one.
    pub(super) fn replace_root(&self, root: Root) -> Root {
        Root(self.root.swap(root.0, Ordering::AcqRel))
    }

    /// Stores a root above or below the present one, whose lock is held.
    pub(super) fn set_root(&self, root: Root) {
        self.root.store(root.0, Ordering::Release);
    }

    /// Returns the leaf at an address that was read from a node, or from the root word. The caller has been pinned
    /// since before it read the address.
    #[inline(always)]
    pub(super) fn leaf(&self, node: *mut u8) -> &Leaf {
        // SAFETY: such addresses are those of the arena's pieces, which last as long as the tree and are not used
        // for anything else while a thread is pinned that may have found them.
        unsafe { NonNull::new_unchecked(node).cast().as_ref() }
    }

    /// Like [`RootWord::leaf`].
    #[inline(always)]
    pub(super) fn inner(&self, node: *mut u8) -> &Inner {
        // SAFETY: as above.
        unsafe { NonNull::new_unchecked(node).cast().as_ref() }
    }

    /// Returns the node with the version that was just noted, if the node that contained its address is unchanged.
    #[inline(always)]
    pub(super) fn arrive<'t, N, E>(
        &self,
        root: Root,
        from: Option<At<'t, Inner>>,
        node: &'t N,
        seen: Option<ObservedVersion>,
    ) -> Result<At<'t, N>, Stop<E>> {
        let seen = seen.ok_or(Stop::Again)?;
        let is_linked = from.map_or_else(|| self.root() == root, |from| from.node.version.is(from.seen));
        if is_linked { Ok(At { node, seen }) } else { Err(Stop::Again) }
    }

    /// Descends to a leaf. `pass` is called with each inner node on the way, and the path to it.
    #[inline(always)]
    pub(super) fn descend<'t, K: Keys>(
        &'t self,
        seek: &mut Seek<'_, K>,
        pass: impl FnMut(At<'t, Inner>, &Path<'t>, usize) -> Result<(), Stop<K::Error>>,
    ) -> Result<(At<'t, Leaf>, Path<'t>), Stop<K::Error>> {
        let (near, path) = self.approach(seek, pass)?;
        Ok((self.land(near)?, path))
    }

    /// Like [`RootWord::descend`], but does not read the leaf. All lines of the leaf are prefetched together,
    /// because a search reads some lines only after others.
    #[inline(always)]
    pub(super) fn approach<'t, K: Keys>(
        &'t self,
        seek: &mut Seek<'_, K>,
        mut pass: impl FnMut(At<'t, Inner>, &Path<'t>, usize) -> Result<(), Stop<K::Error>>,
    ) -> Result<(Near<'t>, Path<'t>), Stop<K::Error>> {
        let root = self.root();
        let (mut node, mut path) = (root.node(), Path::default());
        for level in (1..=root.height()).rev() {
            let inner = self.inner(node);
            let at = self.arrive(root, path.parent.map(|step| step.inner), inner, inner.version.read())?;
            pass(at, &path, level)?;
            let index = inner.child_index(at.seen, seek)?;
            let step = Step { inner: at, index };
            path.parent = Some(step);
            if index > 0 {
                path.low = Some(Step { index: index - 1, ..step });
            }
            if index < inner.count() {
                path.high = Some(step);
            }
            node = inner.child(index);
            // The address is valid only if the parent has not changed. A prefetch accepts any address.
            if level == 1 {
                prefetch(node, size_of::<Leaf>());
            }
            inner.check(at.seen)?;
        }
        Ok((Near { root, parent: path.parent.map(|step| step.inner), node }, path))
    }

    /// Returns the prefetched leaf, if it is still the leaf of the key.
    #[inline(always)]
    pub(super) fn land<'t, E>(&'t self, near: Near<'t>) -> Result<At<'t, Leaf>, Stop<E>> {
        let leaf = self.leaf(near.node);
        self.arrive(near.root, near.parent, leaf, leaf.version.read())
    }
}

/// Prefetches the first `len_bytes` of a node.
#[inline(always)]
pub(super) fn prefetch(node: *mut u8, len_bytes: usize) {
    for line in (0..len_bytes).step_by(LINE_BYTES as usize) {
        arch::prefetch(node.wrapping_add(line));
    }
}
