//! Reading the base into memory: large reads, by several threads, since one does not keep a fast disk busy.

use std::io;
use std::num::NonZero;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pmem_os::Memory;

use crate::File;

/// What one call reads: enough that calls cost nothing, little enough that progress is seen.
const PIECE_BYTES: u64 = 4 << 20;

/// Enough to keep several requests on the way.
const THREAD_COUNT_MAX: usize = 4;

/// Fills the first `len_bytes` of `memory` from `base`; `progress` is told how many bytes are there.
pub(crate) fn load<F: File>(
    base: &F,
    memory: &Memory,
    len_bytes: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<()> {
    let piece_count = len_bytes.div_ceil(PIECE_BYTES);
    let (next, done_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let read_pieces = || -> io::Result<()> {
        loop {
            let start = next.fetch_add(1, Ordering::Relaxed) * PIECE_BYTES;
            if start >= len_bytes {
                return Ok(());
            }
            let piece_bytes = PIECE_BYTES.min(len_bytes - start);
            // SAFETY: the piece lies in the memory that was given to the region; each piece is one thread's alone, and
            // nobody has the medium yet.
            let piece =
                unsafe { slice::from_raw_parts_mut(memory.base().as_ptr().add(start as usize), piece_bytes as usize) };
            base.read_at(piece, start)?;
            progress(done_bytes.fetch_add(piece_bytes, Ordering::Relaxed) + piece_bytes);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let helper_count = (piece_count as usize).min(THREAD_COUNT_MAX).min(cores).saturating_sub(1);
    thread::scope(|scope| {
        let helpers: Vec<_> = (0..helper_count).map(|_| scope.spawn(read_pieces)).collect();
        let mine = read_pieces();
        let theirs = helpers.into_iter().map(|helper| helper.join().expect("a reader does not panic"));
        theirs.fold(mine, Result::and)
    })?;
    base.forget_cached();
    Ok(())
}
