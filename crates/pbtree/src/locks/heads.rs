//! What this process knows of an inner node's separators: how they all begin, and eight bytes of each behind that. A descent reads the
//! separators alone of which these do not tell whether the key is below.
//!
//! # Invariants
//! - Heads are those of the node's separators as these stand. A reader makes heads under the node's lock, of keys whose checksums fit. A thread
//!   that has the node alone takes heads away before separators change or the node goes.
//! - The lock of what is no inner node has none. So heads are gone with the node, whatever becomes of the space.
//!
//! Heads are DRAM, and made when a descent first comes by: nothing has to be read before a tree serves. A node of order 63 has 536 bytes of
//! heads, a key in a tree of such nodes a third of a byte.

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::Ordering;

use pmem::Dram;

use crate::Error;
use crate::locks::{LockTable, NodeLock};

/// The longest beginning that is noted. Separators that are alike in more are told apart by their bytes.
const START_BYTES_MAX: usize = 24;

/// Before the heads.
#[repr(C)]
struct Start {
    len: usize,
    bytes: [u8; START_BYTES_MAX],
}

/// What is known of a node's separators.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a> {
    /// How all begin.
    start: &'a [u8],
    /// What each has behind that, its first byte foremost, and zeros where it ends.
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
    /// Those of `count` separators.
    ///
    /// # Safety
    /// `memory` was filled for as many, and stays as it is.
    unsafe fn at(memory: NonNull<u8>, count: usize) -> Heads<'a> {
        // SAFETY: the memory begins with a start, and has `count` heads behind it.
        unsafe {
            let start = memory.cast::<Start>().as_ref();
            let heads = memory.add(size_of::<Start>()).cast();
            Heads { start: &start.bytes[..start.len], heads: slice::from_raw_parts(heads.as_ptr(), count) }
        }
    }

    /// Among which separators a search for `key` has to look. The key is not below those before, and below those behind.
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

/// Fills zeroed memory of a node's layout with what `count` keys begin with; false if these are not in order.
///
/// # Safety
/// The memory is the caller's alone, and for as many.
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
    /// The heads of a node's `count` separators, made now if there are none; nothing where the host has no memory, or a separator is
    /// damaged or another's: a search that goes by bytes alone comes to a child that ends behind the key. The caller holds the node.
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
        // SAFETY: filled for the node's separators, of which there are as many as long as the caller holds the node; and taken away
        // only by a thread that has it alone.
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
        // SAFETY: it was lent just now, for as many as a node may have.
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
                // SAFETY: lent just now with this layout, and shown to no thread.
                unsafe { self.dram.deallocate(new, layout) };
                others
            }
        }
    }

    /// Takes a node's heads away. The caller has the node alone, or the table.
    pub(crate) fn forget_heads(&self, node: &NodeLock) {
        if let Some(memory) = NonNull::new(node.heads.swap(ptr::null_mut(), Ordering::AcqRel)) {
            let layout = layout(self.order());
            self.given_back(layout.size());
            // SAFETY: lent with this layout; threads that use it hold the node.
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

    /// Keys with starts of every length in common, also beyond what is noted, and ones that end early.
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
            let lent_bytes = table.lent_bytes();
            table.forget_heads(&lock);
            assert!(table.lent_bytes() < lent_bytes && lock.heads.load(Ordering::Relaxed).is_null());
            assert!(table.heads(&lock, keys.len(), |_| Err(Error::WouldWait)).is_none());
            assert!(table.heads(&lock, 0, |_| Err(Error::WouldWait)).is_none());
        }
    }
}
