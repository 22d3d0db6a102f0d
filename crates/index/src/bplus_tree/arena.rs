//! Memory for nodes and separators: pieces of a power of two, cut from chunks that the host allocates.
//!
//! Chunks are freed only with the arena. The first one is small, so that a small tree is small. From
//! [`CHUNK_BYTES_MAX`] on, each chunk is a huge page if the host grants those.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem::Dram;

use super::NoDram;

const CHUNK_BYTES_MIN: usize = 64 * 1024;
/// The size of a huge page.
const CHUNK_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Shorter pieces are cut from a slab of this length, several at a time, so that nodes stay aligned to their
/// length.
const SLAB_BYTES: usize = 512;
const PIECE_BITS_MIN: u32 = 4;
/// The largest piece: a separator of 65,535 bytes and its length.
const PIECE_BITS_MAX: u32 = 17;
const PIECE_CLASS_COUNT: usize = (PIECE_BITS_MAX - PIECE_BITS_MIN + 1) as usize;

/// Memory with a length that follows from its class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    start: NonNull<u8>,
    class: u8,
}

// SAFETY: a piece is memory that belongs to its holder.
unsafe impl Send for Piece {}

impl Piece {
    /// Returns the piece at `start`, which was allocated for `len_bytes`.
    pub(super) fn at(start: NonNull<u8>, len_bytes: usize) -> Piece {
        Piece { start, class: class_of(len_bytes) as u8 }
    }

    pub(super) fn start(self) -> NonNull<u8> {
        self.start
    }
}

/// The allocator of pieces.
pub(super) struct Arena<D: Dram> {
    dram: D,
    cut: Mutex<Cut>,
    allocated_bytes: AtomicU64,
}

/// The allocated chunks, and their free pieces.
#[derive(Default)]
struct Cut {
    chunks: Vec<(NonNull<u8>, Layout)>,
    /// The bytes of the last chunk that were never handed out.
    uncut_bytes: usize,
    free: [Vec<NonNull<u8>>; PIECE_CLASS_COUNT],
}

// SAFETY: the chunks and the free pieces belong to the arena.
unsafe impl Send for Cut {}

impl<D: Dram> fmt::Debug for Arena<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("allocated_bytes", &self.allocated_bytes).finish_non_exhaustive()
    }
}

impl<D: Dram> Arena<D> {
    pub(super) fn new(dram: D) -> Arena<D> {
        Arena { dram, cut: Mutex::default(), allocated_bytes: AtomicU64::new(0) }
    }

    /// Returns the number of bytes that the host has allocated.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Allocates at least `len_bytes`, aligned to a cache line if it is that long.
    pub(super) fn allocate(&self, len_bytes: usize) -> Result<Piece, NoDram> {
        let class = class_of(len_bytes);
        let mut cut = self.cut.lock();
        let start = match cut.free[class].pop() {
            Some(start) => start,
            None => self.cut_fresh(&mut cut, class)?,
        };
        Ok(Piece { start, class: class as u8 })
    }

    /// Frees a piece that no thread reads any more.
    pub(super) fn take_back(&self, piece: Piece) {
        self.cut.lock().free[usize::from(piece.class)].push(piece.start);
    }

    fn cut_fresh(&self, cut: &mut Cut, class: usize) -> Result<NonNull<u8>, NoDram> {
        let piece_bytes = piece_bytes(class);
        let slab_bytes = piece_bytes.max(SLAB_BYTES);
        if cut.uncut_bytes < slab_bytes {
            self.borrow_chunk(cut, slab_bytes)?;
        }
        let &(chunk, layout) = cut.chunks.last().expect("a chunk was just allocated, if there was none");
        // SAFETY: within the chunk: so many bytes of it are left.
        let slab = unsafe { chunk.add(layout.size() - cut.uncut_bytes) };
        cut.uncut_bytes -= slab_bytes;
        for start in (piece_bytes..slab_bytes).step_by(piece_bytes) {
            // SAFETY: within the slab.
            cut.free[class].push(unsafe { slab.add(start) });
        }
        Ok(slab)
    }

    /// Allocates a chunk as long as all before it, between the bounds. The unused part of the last chunk becomes
    /// free pieces.
    fn borrow_chunk(&self, cut: &mut Cut, slab_bytes: usize) -> Result<(), NoDram> {
        let allocated_bytes = (self.allocated_bytes() as usize).next_power_of_two();
        let wanted_bytes = allocated_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).max(slab_bytes);
        let layout = Layout::from_size_align(wanted_bytes, wanted_bytes).expect("powers of two are layouts");
        let chunk = self.dram.allocate(layout).ok_or(NoDram { wanted_bytes })?;
        self.allocated_bytes.fetch_add(wanted_bytes as u64, Ordering::Relaxed);
        cut.keep_rest();
        cut.chunks.push((chunk, layout));
        cut.uncut_bytes = wanted_bytes;
        Ok(())
    }
}

impl Cut {
    fn keep_rest(&mut self) {
        let Some(&(chunk, layout)) = self.chunks.last() else { return };
        for start in (layout.size() - self.uncut_bytes..layout.size()).step_by(SLAB_BYTES) {
            // SAFETY: within the chunk.
            self.free[class_of(SLAB_BYTES)].push(unsafe { chunk.add(start) });
        }
        self.uncut_bytes = 0;
    }
}

impl<D: Dram> Drop for Arena<D> {
    fn drop(&mut self) {
        for (chunk, layout) in self.cut.get_mut().chunks.drain(..) {
            // SAFETY: allocated with this layout; only the arena's owner uses pieces, and it is being dropped.
            unsafe { self.dram.deallocate(chunk, layout) };
        }
    }
}

const fn piece_bytes(class: usize) -> usize {
    1 << (class as u32 + PIECE_BITS_MIN)
}

const fn class_of(len_bytes: usize) -> usize {
    let bits = len_bytes.next_power_of_two().trailing_zeros();
    if bits < PIECE_BITS_MIN { 0 } else { (bits - PIECE_BITS_MIN) as usize }
}
