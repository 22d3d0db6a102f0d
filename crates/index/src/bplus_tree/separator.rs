//! Separators, which divide the keys of an inner node's children. A separator owns its bytes, which never change.
//!
//! A separator is one word. Up to seven bytes are stored in the word itself; longer separators are stored outside,
//! behind their length.
//!
//! ```text
//!  63                       8 7      1 0
//! +--------------------------+--------+---+
//! | up to seven bytes, first |length  | 1 |
//! |   byte lowest            |        |   |
//! +--------------------------+--------+---+
//! |        address of 2 bytes of length, then the bytes        | (even)
//! +------------------------------------------------------------+
//! ```

use std::ptr::{self, NonNull};
use std::slice;

use pmem::Dram;

use super::NoDram;
use super::arena::{Arena, Piece};

const INLINE_BYTES_MAX: usize = 7;
const LENGTH_BYTES: usize = 2;

/// A handle. The thread that unlinks the last one retires its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct Separator(*mut u8);

// SAFETY: the bytes that it names do not change.
unsafe impl Send for Separator {}

impl Separator {
    /// Creates a separator of these bytes.
    ///
    /// # Panics
    /// Panics if they are longer than a key can be.
    pub(super) fn new<D: Dram>(arena: &Arena<D>, bytes: &[u8]) -> Result<Separator, NoDram> {
        if bytes.len() <= INLINE_BYTES_MAX {
            let mut word = [0; 8];
            word[0] = (bytes.len() as u8) << 1 | 1;
            word[1..=bytes.len()].copy_from_slice(bytes);
            return Ok(Separator(ptr::without_provenance_mut(u64::from_le_bytes(word) as usize)));
        }
        let length = u16::try_from(bytes.len()).expect("separators are no longer than keys");
        let start = arena.allocate(LENGTH_BYTES + bytes.len())?.start();
        // SAFETY: the piece has that length, and no other thread can see it.
        unsafe {
            start.cast::<[u8; LENGTH_BYTES]>().write(length.to_ne_bytes());
            start.add(LENGTH_BYTES).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
        Ok(Separator(start.as_ptr()))
    }

    /// Returns the word for a node.
    pub(super) fn word(self) -> *mut u8 {
        self.0
    }

    /// # Safety
    /// The caller read the word from a node, checked the node's version after that, and has been pinned since
    /// before it noted the version; or the caller holds the node's lock, or has not linked it yet.
    pub(super) unsafe fn from_word(word: *mut u8) -> Separator {
        Separator(word)
    }

    /// Calls `show` with the bytes.
    #[inline]
    pub(super) fn with<R>(self, show: impl FnOnce(&[u8]) -> R) -> R {
        if self.is_inline() {
            let word = (self.0.addr() as u64).to_le_bytes();
            return show(&word[1..][..usize::from(word[0] >> 1)]);
        }
        show(self.outside())
    }

    pub(super) fn to_vec(self) -> Vec<u8> {
        self.with(<[u8]>::to_vec)
    }

    /// Returns the memory outside of the word, if there is any.
    pub(super) fn piece(self) -> Option<Piece> {
        if self.is_inline() {
            return None;
        }
        Some(Piece::at(NonNull::new(self.0)?, LENGTH_BYTES + self.outside().len()))
    }

    fn is_inline(self) -> bool {
        self.0.addr() & 1 == 1
    }

    fn outside(&self) -> &[u8] {
        // SAFETY: the word is an address that `new` made, and the memory belongs to the separator while its handles
        // are used: see `from_word`.
        unsafe {
            let length = u16::from_ne_bytes(self.0.cast::<[u8; LENGTH_BYTES]>().read());
            slice::from_raw_parts(self.0.add(LENGTH_BYTES), usize::from(length))
        }
    }
}

const _: () = assert!(size_of::<usize>() == 8, "a separator's word holds seven bytes");
