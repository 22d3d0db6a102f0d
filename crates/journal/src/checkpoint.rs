//! The checkpoint: sealed segments go into the base, and are free then.
//!
//! # Steps
//! 1. The entries of every sealed segment are read back from the log and written to the base, in their order. They are
//!    durable in the log. Memory is not looked at: it holds what the log may yet lose. *Crash:* the base has any part of
//!    them, and replay, which begins at the oldest of these segments, writes all of them again.
//! 2. The base is synced. Space that was discarded before an *earlier* such step is given back (`discards`).
//! 3. The segments may be overwritten. The next header says which is the oldest now. *Crash:* replay begins where the last
//!    header says, at this segment or an older one that is still whole.

use std::io;
use std::sync::atomic::Ordering;

use pmem::{Canary, MediumError};

use crate::File;
use crate::frame::{Demands, entries};
use crate::journal::Journal;
use crate::recover::{Unreadable, frames};
use crate::slots::Sealed;

impl<F: File> Journal<F> {
    /// Applies what is sealed; false if nothing was.
    pub(crate) fn checkpoint(&self) -> Result<bool, MediumError> {
        let _alone = self.checkpoint.lock();
        let batch: Vec<Sealed> = self.slots.lock().sealed.iter().cloned().collect();
        if batch.is_empty() {
            return Ok(false);
        }
        self.healthy()?;
        let mut segment = Vec::new();
        for sealed in &batch {
            self.apply(sealed, &mut segment).map_err(|error| self.poison(&error))?;
        }
        if !self.base.breaks(Canary::RecycledBeforeBase) {
            self.sync_base()?;
        }
        self.punch_discarded();
        self.base.forget_cached();
        self.slots.lock().recycle(batch.len());
        self.slots_changed.notify_all();
        Ok(true)
    }

    /// Step 1 for one segment.
    fn apply(&self, sealed: &Sealed, segment: &mut Vec<u8>) -> io::Result<()> {
        segment.resize(sealed.end_bytes as usize, 0);
        self.log.read_at(segment, sealed.slot * self.options.segment_bytes)?;
        let mut count = sealed.sequences.start;
        for frame in frames(segment, sealed.ordinal, sealed.sequences.clone(), Demands::on(&self.log)) {
            self.apply_frame(frame)?;
            count += 1;
        }
        if count == sealed.sequences.end { Ok(()) } else { Err(io::Error::other(Unreadable)) }
    }

    pub(crate) fn apply_frame(&self, frame: &[u8]) -> io::Result<()> {
        for entry in entries(frame) {
            let (at, bytes) = entry.ok_or_else(|| io::Error::other(Unreadable))?;
            match bytes {
                [] => {}
                _ if self.base.breaks(Canary::LivePageInBase) => self.write_live_page(at)?,
                _ => self.base.write_at(bytes, at)?,
            }
        }
        Ok(())
    }

    /// The broken twin's way.
    fn write_live_page(&self, at: u64) -> io::Result<()> {
        const PAGE_BYTES: u64 = 4096;
        let start = at - at % PAGE_BYTES;
        let word = |i: u64| {
            // SAFETY: the page holds a byte of the region, which consists of whole pages; words of it are read atomically.
            unsafe {
                (*self.memory.base().as_ptr().add((start + i * 8) as usize).cast::<std::sync::atomic::AtomicU64>())
                    .load(Ordering::Relaxed)
            }
        };
        let page: Vec<u8> = (0..PAGE_BYTES / 8).flat_map(|i| word(i).to_ne_bytes()).collect();
        self.base.write_at(&page, start)
    }
}
