//! Inner nodes: finding a child, and changing a node under its lock.
//!
//! Child `i` holds the keys from separator `i - 1` (inclusive) to separator `i` (exclusive).

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use super::Keys;
use super::layout::{HEAD_BYTES, Inner, SEPARATOR_COUNT_MAX, UNUSED_HEAD};
use super::separator::Separator;
use super::target::{Stop, Target, common_bytes, equal_heads, first_not_before, head_of};
use super::version::ObservedVersion;

/// The leaf to which a search descends.
pub(super) enum Seek<'a, K> {
    /// The leaf whose range contains the key.
    At(Target<'a, K>),
    /// The leaf whose range contains the keys just below the key.
    Below(Target<'a, K>),
    /// The last leaf.
    Last,
}

impl Inner {
    /// Returns the number of separators. It may be wrong while another thread changes the node, but it is never too
    /// large for the arrays.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        usize::from(self.count.load(Relaxed)).min(SEPARATOR_COUNT_MAX)
    }

    #[inline(always)]
    pub(super) fn prefix_bytes(&self) -> usize {
        usize::from(self.prefix_bytes.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn child(&self, index: usize) -> *mut u8 {
        self.children[index].load(Relaxed)
    }

    /// Returns the separator at `index`, at the version `seen`. The caller has been pinned since before it noted
    /// the version.
    #[inline(always)]
    pub(super) fn separator<E>(&self, seen: ObservedVersion, index: usize) -> Result<Separator, Stop<E>> {
        let word = self.separators[index].load(Relaxed);
        self.check(seen)?;
        // SAFETY: the version was just checked.
        Ok(unsafe { Separator::from_word(word) })
    }

    /// Returns the separator at `index` of a node that is locked, or not linked yet.
    pub(super) fn own_separator(&self, index: usize) -> Separator {
        // SAFETY: no other thread changes the node.
        unsafe { Separator::from_word(self.separators[index].load(Relaxed)) }
    }

    #[inline(always)]
    pub(super) fn check<E>(&self, seen: ObservedVersion) -> Result<(), Stop<E>> {
        if self.version.is(seen) { Ok(()) } else { Err(Stop::Again) }
    }

    /// Returns the index of the child to which a search descends. The node's version was `seen`; the result is
    /// valid if it still is.
    #[inline(always)]
    pub(super) fn child_index<K: Keys>(
        &self,
        seen: ObservedVersion,
        seek: &mut Seek<'_, K>,
    ) -> Result<usize, Stop<K::Error>> {
        match seek {
            Seek::At(target) => self.rank(seen, target, Ordering::is_ge),
            Seek::Below(target) => self.rank(seen, target, Ordering::is_gt),
            Seek::Last => Ok(self.count()),
        }
    }

    /// Returns the number of separators that the target is past. `is_past` decides this from a comparison.
    #[inline(always)]
    pub(super) fn rank<K: Keys>(
        &self,
        seen: ObservedVersion,
        target: &mut Target<'_, K>,
        is_past: impl Fn(Ordering) -> bool,
    ) -> Result<usize, Stop<K::Error>> {
        let (count, prefix_bytes) = (self.count(), self.prefix_bytes());
        if prefix_bytes > 0 {
            match self.compare_prefix(seen, target, prefix_bytes)? {
                Ordering::Less => return Ok(0),
                Ordering::Greater => return Ok(count),
                Ordering::Equal => {}
            }
        }
        let equal = equal_heads(&self.heads, count, target.head(prefix_bytes)?);
        if equal.0 == equal.1 {
            return Ok(equal.0);
        }
        first_not_before(equal, |index| self.separator(seen, index)?.with(|bytes| Ok(is_past(target.compare(bytes)?))))
    }

    /// Compares the start of the target with the prefix.
    #[inline(always)]
    fn compare_prefix<K: Keys>(
        &self,
        seen: ObservedVersion,
        target: &mut Target<'_, K>,
        prefix_bytes: usize,
    ) -> Result<Ordering, Stop<K::Error>> {
        let unshared_bits = 8 * HEAD_BYTES.saturating_sub(prefix_bytes);
        let (mine, prefix) = (target.head(0)? >> unshared_bits, self.prefix_head.load(Relaxed) >> unshared_bits);
        if mine != prefix {
            return Ok(mine.cmp(&prefix));
        }
        if prefix_bytes > HEAD_BYTES {
            return self.compare_long_prefix(seen, target, prefix_bytes);
        }
        // The zero padding of a shorter key may have matched the prefix. Such a key has nothing left, so it comes
        // before all separators.
        Ok(Ordering::Equal)
    }

    /// Like `compare_prefix`, for a prefix that is longer than a head: the first separator contains it.
    #[inline]
    fn compare_long_prefix<K: Keys>(
        &self,
        seen: ObservedVersion,
        target: &mut Target<'_, K>,
        prefix_bytes: usize,
    ) -> Result<Ordering, Stop<K::Error>> {
        let first = self.separator(seen, 0)?;
        let start = target.start(prefix_bytes)?;
        Ok(first.with(|bytes| start.cmp(&bytes[..prefix_bytes])))
    }

    /// Puts `separator` at `index` and `child` to its right. The node is locked and not full.
    pub(super) fn insert(&self, index: usize, separator: Separator, child: *mut u8) {
        let count = self.count();
        for from in (index..count).rev() {
            self.heads[from + 1].store(self.heads[from].load(Relaxed), Relaxed);
            self.separators[from + 1].store(self.separators[from].load(Relaxed), Relaxed);
            self.children[from + 2].store(self.child(from + 1), Relaxed);
        }
        self.separators[index].store(separator.word(), Relaxed);
        self.children[index + 1].store(child, Relaxed);
        self.count.store(count as u16 + 1, Relaxed);
        let shared = separator.with(|bytes| self.shared_bytes_with(bytes, if index == 0 { 1 } else { 0 }));
        if count <= 1 || shared < self.prefix_bytes() {
            self.set_prefix(shared);
        } else {
            self.set_head(index);
        }
    }

    fn shared_bytes_with(&self, bytes: &[u8], other: usize) -> usize {
        if other < self.count() { self.own_separator(other).with(|other| common_bytes(bytes, other)) } else { 0 }
    }

    /// Removes the separator at `index` and the child to its right. The node is locked.
    pub(super) fn remove(&self, index: usize) -> Separator {
        let (separator, last) = (self.own_separator(index), self.count() - 1);
        for to in index..last {
            self.heads[to].store(self.heads[to + 1].load(Relaxed), Relaxed);
            self.separators[to].store(self.separators[to + 1].load(Relaxed), Relaxed);
            self.children[to + 1].store(self.child(to + 2), Relaxed);
        }
        self.heads[last].store(UNUSED_HEAD, Relaxed);
        self.count.store(last as u16, Relaxed);
        if last == 0 {
            self.prefix_bytes.store(0, Relaxed);
        }
        separator
    }

    /// Replaces all separators and children; there is one child more. The node is locked, or not linked yet.
    pub(super) fn fill(&self, separators: &[Separator], children: &[*mut u8]) {
        debug_assert_eq!(separators.len() + 1, children.len());
        for (slot, separator) in self.separators.iter().zip(separators) {
            slot.store(separator.word(), Relaxed);
        }
        for (slot, &child) in self.children.iter().zip(children) {
            slot.store(child, Relaxed);
        }
        self.count.store(separators.len() as u16, Relaxed);
        for head in &self.heads[separators.len()..] {
            head.store(UNUSED_HEAD, Relaxed);
        }
        self.set_prefix(self.prefix_of_all());
    }

    /// Returns the length of the prefix that all separators share: that of the first and the last one. A single
    /// separator gets no prefix, because nothing would be left of it to compare.
    fn prefix_of_all(&self) -> usize {
        match self.count() {
            0 | 1 => 0,
            count => self.own_separator(0).with(|first| self.shared_bytes_with(first, count - 1)),
        }
    }

    fn set_prefix(&self, prefix_bytes: usize) {
        self.prefix_bytes.store(prefix_bytes as u16, Relaxed);
        let prefix_head = if prefix_bytes > 0 { self.own_separator(0).with(|first| head_of(first, 0)) } else { 0 };
        self.prefix_head.store(prefix_head, Relaxed);
        for index in 0..self.count() {
            self.set_head(index);
        }
    }

    fn set_head(&self, index: usize) {
        let head = self.own_separator(index).with(|bytes| head_of(bytes, self.prefix_bytes()));
        self.heads[index].store(head, Relaxed);
    }

    /// Returns all separators and children of a locked node.
    pub(super) fn contents(&self) -> (Vec<Separator>, Vec<*mut u8>) {
        let count = self.count();
        (
            (0..count).map(|index| self.own_separator(index)).collect(),
            (0..=count).map(|index| self.child(index)).collect(),
        )
    }
}
