//! The heads of an inner node's separators, cached in DRAM: the common prefix, and the eight bytes of each separator
//! behind the prefix. A descent compares heads, and reads only the separators that the heads cannot distinguish from
//! the key.
//!
//! # Invariants
//! - Heads match the node's present separators. A reader makes heads under the node's lock, from keys whose checksums
//!   fit. A thread with the exclusive lock removes the heads before separators change or the node is freed.
//! - Only locks of inner nodes have heads. So heads disappear with the node, whatever its space is used for next.
//!
//! Heads are in DRAM and made when a descent first passes the node: nothing has to be read before a tree serves. A
//! node of order 63 has 536 bytes of heads; a key in a tree of such nodes, a third of a byte.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::Ordering;

use pmem::Dram;

use crate::Error;
use crate::locks::{LockTable, NodeLock};

/// The longest cached prefix. Separators with a longer common prefix are distinguished by their bytes.
const START_BYTES_MAX: usize = 24;

/// The prefix, stored before the heads.
#[repr(C)]
struct Start {
    len: usize,
    bytes: [u8; START_BYTES_MAX],
}

/// The cached heads of a node's separators.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a> {
    /// The common prefix.
    start: &'a [u8],
    /// The eight bytes of each separator behind the prefix, big endian, padded with zeros.
    heads: &'a [u64],
}

fn layout(order: usize) -> Layout {
    let heads = Layout::array::<u64>(order).expect("an order is small");
    let (layout, offset) = Layout::new::<Start>().extend(heads).expect("an order is small");
    debug_assert_eq!(offset, size_of::<Start>());
    layout
}

fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().zip((0..8).rev()).map(|(&byte, place)| u64::from(byte) << (8 * place)).sum(),
    }
}

impl<'a> Heads<'a> {
    /// Returns the heads of `count` separators.
    ///
    /// # Safety
    /// `memory` was filled for `count` separators and is not changed.
    unsafe fn at(memory: NonNull<u8>, count: usize) -> Heads<'a> {
        // SAFETY: the memory begins with a start, and has `count` heads behind it.
        unsafe {
            let start = memory.cast::<Start>().as_ref();
            let heads = memory.add(size_of::<Start>()).cast();
            Heads { start: &start.bytes[..start.len], heads: slice::from_raw_parts(heads.as_ptr(), count) }
        }
    }

    /// Returns the range of separators that must be compared with `key`. The key is not below the separators before
    /// the range, and is below those behind it.
    #[inline]
    pub(crate) fn unclear(&self, key: &[u8]) -> Range<usize> {
        let (start, rest) = key.split_at(self.start.len().min(key.len()));
        if start != self.start {
            let past = if start < self.start { 0 } else { self.heads.len() };
            return past..past;
        }
        let head = head(rest);
        let from = self.heads.partition_point(|&other| other < head);
        let alike = self.heads[from..].iter().take_while(|&&other| other == head).count();
        from..from + alike
    }
}

/// Fills zeroed memory of a node's layout with the heads of `count` keys. Returns false if the keys are not in order.
///
/// # Safety
/// Only the caller uses the memory, and it is long enough.
unsafe fn fill<'k>(
    memory: NonNull<u8>,
    count: usize,
    key: impl Fn(usize) -> Result<&'k [u8], Error>,
) -> Result<bool, Error> {
    let (first, last) = (key(0)?, key(count - 1)?);
    let alike = first.iter().zip(last).take_while(|(a, b)| a == b).count().min(START_BYTES_MAX);
    // SAFETY: the caller's promise; zeros are a start, and heads.
    let (start, heads) = unsafe {
        let heads = memory.add(size_of::<Start>()).cast::<u64>();
        (memory.cast::<Start>().as_mut(), slice::from_raw_parts_mut(heads.as_ptr(), count))
    };
    start.len = alike;
    start.bytes[..alike].copy_from_slice(&first[..alike]);
    let mut before = None;
    for (i, place) in heads.iter_mut().enumerate() {
        let key = key(i)?;
        if before >= Some(key) {
            return Ok(false);
        }
        *place = head(key.get(alike..).unwrap_or_default());
        before = Some(key);
    }
    Ok(true)
}

impl<D: Dram> LockTable<D> {
    /// Returns the heads of a node's `count` separators, and makes them if there are none. Returns `None` if the host
    /// has no memory, or if a separator is damaged or belongs to another node. The descent then compares only bytes,
    /// and reaches a child that ends behind the key. The caller has locked the node.
    #[inline]
    pub(crate) fn heads<'h, 'k>(
        &self,
        node: &'h NodeLock,
        count: usize,
        key: impl Fn(usize) -> Result<&'k [u8], Error>,
    ) -> Option<Heads<'h>> {
        let memory = match NonNull::new(node.heads.load(Ordering::Acquire)) {
            Some(made) => made,
            None => self.make_heads(node, count, key)?,
        };
        // SAFETY: filled for the node's separators, whose number does not change while the caller holds the lock; and
        // removed only by a thread with the exclusive lock.
        Some(unsafe { Heads::at(memory, count) })
    }

    #[cold]
    fn make_heads<'k>(
        &self,
        node: &NodeLock,
        count: usize,
        key: impl Fn(usize) -> Result<&'k [u8], Error>,
    ) -> Option<NonNull<u8>> {
        let layout = layout(self.order());
        let new = self.dram.allocate(layout).filter(|_| count > 0)?;
        // SAFETY: just allocated, for as many separators as a node may have.
        let filled = unsafe { fill(new, count, key) };
        let installed = filled.ok().filter(|&are_in_order| are_in_order).ok_or(None).and_then(|_| {
            let installed =
                node.heads.compare_exchange(ptr::null_mut(), new.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
            installed.map_err(NonNull::new)
        });
        match installed {
            Ok(_) => {
                self.lent(layout.size());
                Some(new)
            }
            Err(others) => {
                // SAFETY: just allocated with this layout, and no other thread has a reference to it.
                unsafe { self.dram.deallocate(new, layout) };
                others
            }
        }
    }

    /// Removes a node's heads. The caller has locked the node exclusively, or owns the table.
    pub(crate) fn forget_heads(&self, node: &NodeLock) {
        if let Some(memory) = NonNull::new(node.heads.swap(ptr::null_mut(), Ordering::AcqRel)) {
            let layout = layout(self.order());
            self.given_back(layout.size());
            // SAFETY: allocated with this layout; threads that use it hold the node's lock.
            unsafe { self.dram.deallocate(memory, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use pmem_sim::SimDram;

    use super::*;

    /// Returns keys with common prefixes of every length, also longer than the cached one, and keys that end early.
    fn keys(common: usize) -> Vec<Vec<u8>> {
        let ends: [&[u8]; 9] =
            [b"", b"\0", b"\0\0\0\0\0\0\0\0\0", b"a", b"a\0", b"aaaaaaaa", b"aaaaaaaab", b"b", b"\xff\xff"];
        let mut keys: Vec<Vec<u8>> = ends.iter().map(|end| [&[b'x'; 40][..common], *end].concat()).collect();
        keys.sort();
        keys
    }

    #[test]
    fn cleared_lines_hide_only_their_bits() {
        let table = LockTable::new(SimDram, 1024).unwrap();
        for common in [0, 1, 8, 23, 24, 25, 40] {
            let (keys, lock) = (keys(common), NodeLock::default());
            let heads = table.heads(&lock, keys.len(), |i| Ok(&keys[i])).unwrap();
            let others =
                (0..=common).flat_map(|len| [0, b'x', b'y'].map(|last| [&[b'x'; 40][..len], &[last]].concat()));
            for key in keys.iter().cloned().chain(others).chain([Vec::new()]) {
                let unclear = heads.unclear(&key);
                assert!(keys[..unclear.start].iter().all(|separator| *separator < key), "{common} {key:?}");
                assert!(keys[unclear.end..].iter().all(|separator| *separator > key), "{common} {key:?}");
                assert!(common > 24 || unclear.len() <= 3, "{common} {key:?}: {unclear:?}");
            }
            let allocated_bytes = table.allocated_bytes();
            table.forget_heads(&lock);
            assert!(table.allocated_bytes() < allocated_bytes && lock.heads.load(Ordering::Relaxed).is_null());
            assert!(table.heads(&lock, keys.len(), |_| Err(Error::WouldWait)).is_none());
            assert!(table.heads(&lock, 0, |_| Err(Error::WouldWait)).is_none());
        }
    }
}
