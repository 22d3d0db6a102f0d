//! The checkpoint: sealed segments go into the base, and are free then.
//!
//! # Steps
//! 1. The entries of every sealed segment are read back from the log and written to the base, a page at a time (`apply`). They
//!    are durable in the log. Memory is not looked at: it holds what the log may yet lose. *Crash:* the base has any part of
//!    them, and replay, which begins at the oldest of these segments, writes all of them again.
//! 2. The base is synced. Space that was discarded before an *earlier* such step is given back (`discards`).
//! 3. The segments may be overwritten. The next header says which is the oldest now. *Crash:* replay begins where the last
//!    header says, at this segment or an older one that is still whole.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{Canary, MediumError, Offset};

use crate::File;
use crate::apply::Changes;
use crate::frame::Demands;
use crate::journal::Journal;
use crate::recover::{Unreadable, frames};
use crate::slots::Sealed;

/// What is read of the log at a time. A page that changes often is then written once for all of it.
const GATHERED_BYTES: u64 = 64 << 20;

/// What a disk writes in some milliseconds: so much longer a sync of the log may take meanwhile.
const WRITE_BACK_BYTES: u64 = 4 << 20;

impl<F: File> Journal<F> {
    /// Applies what is sealed; false if nothing was.
    pub(crate) fn checkpoint(&self) -> Result<bool, MediumError> {
        let _alone = self.checkpoint.lock();
        let batch: Vec<Sealed> = self.slots.lock().sealed.iter().cloned().collect();
        if batch.is_empty() {
            return Ok(false);
        }
        self.healthy()?;
        let gathered_count = (GATHERED_BYTES / self.options.segment_bytes).max(1) as usize;
        for some in batch.chunks(gathered_count) {
            self.apply(some).map_err(|error| self.poison(&error))?;
        }
        if !self.base.breaks(Canary::RecycledBeforeBase) {
            self.write_base_back();
            self.sync_base()?;
        }
        self.punch_discarded();
        let is_next_due = {
            let mut slots = self.slots.lock();
            slots.recycle(batch.len());
            slots.sealed.len() >= self.options.checkpoint_segments()
        };
        self.slots_changed.notify_all();
        if !is_next_due {
            self.base.forget_cached();
        }
        Ok(true)
    }

    /// A little at a time, so that syncs of the log do not queue behind all of it.
    fn write_base_back(&self) {
        let len_bytes = self.base.len().unwrap_or_default();
        for start in (0..len_bytes).step_by(WRITE_BACK_BYTES as usize) {
            self.base.write_back(start..len_bytes.min(start + WRITE_BACK_BYTES));
        }
    }

    /// Step 1 for some segments.
    fn apply(&self, batch: &[Sealed]) -> io::Result<()> {
        let segments = batch.iter().map(|sealed| self.read_back(sealed)).collect::<io::Result<Vec<_>>>()?;
        let mut changes = Changes::default();
        for (sealed, segment) in batch.iter().zip(&segments) {
            let mut count = sealed.sequences.start;
            for frame in frames(segment, sealed.ordinal, sealed.sequences.clone(), Demands::on(&self.log)) {
                changes.add(frame)?;
                count += 1;
            }
            if count != sealed.sequences.end {
                return Err(io::Error::other(Unreadable));
            }
        }
        changes.write_to(&self.base, |at, pages| self.copy_live(at, pages))
    }

    fn read_back(&self, sealed: &Sealed) -> io::Result<Vec<u8>> {
        let mut segment = vec![0; sealed.end_bytes as usize];
        self.log.read_at(&mut segment, sealed.slot * self.options.segment_bytes)?;
        Ok(segment)
    }

    /// The broken twin's way.
    fn copy_live(&self, start: u64, pages: &mut [u8]) {
        self.reach_slowly(Offset(start).span(pages.len() as u64)).expect("the twin's disk can be read");
        for (i, word) in pages.chunks_exact_mut(8).enumerate() {
            // SAFETY: the pages lie in the region, which consists of whole pages; words of it are read atomically.
            let live = unsafe { &*self.region.memory.base().as_ptr().add(start as usize + i * 8).cast::<AtomicU64>() };
            word.copy_from_slice(&live.load(Ordering::Relaxed).to_ne_bytes());
        }
    }

    /// The broken twin's way.
    pub(crate) fn apply_frame(&self, frame: &[u8]) -> io::Result<()> {
        let mut changes = Changes::default();
        changes.add(frame)?;
        changes.write_to(&self.base, |at, pages| self.copy_live(at, pages))
    }
}
