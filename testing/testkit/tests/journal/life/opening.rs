//! The openings of a life: the contents that one should find, and the comparison with those that it shows.

use std::io;
use std::sync::atomic::Ordering;

use fastrand::Rng;
use journal::{File, JournalError, JournalOptions, Journaled, Which};
use pmem::{Bytes, MediumError, Offset, Persist, Residency};
use pmem_sim::SimFile;

use super::{Life, PAGE_BYTES, Shared};
use crate::content::whole;
use crate::wrong::Wrong;

impl Life {
    pub(super) fn open(&self) -> Result<Journaled<SimFile>, JournalError> {
        Journaled::open(self.disk.files(), self.options(), &|_| {})
    }

    /// Reads the base past the cache, if its pages may be evicted: after a failed sync that decides which contents the
    /// disk has. Without this, a page could show one content to [`Life::find`], and another after a crash if this life
    /// does not read it.
    pub(super) fn decide_contents(&self) {
        let base = self.disk.files().base;
        let len_bytes = base.len().expect("a disk without faults");
        if self.memory_bytes_max.is_some() {
            base.read_pages(&mut vec![0; len_bytes as usize], 0).expect("a disk without faults");
        }
    }

    /// Returns the contents that a read-only opening shows.
    fn read(&self) -> Result<Vec<u8>, JournalError> {
        // Through the operating system's cache, as an opening for writing without a limit of memory finds the base.
        let options = JournalOptions { writable: false, memory_bytes_max: None, ..self.options() };
        whole(&Journaled::open(self.disk.files(), options, &|_| {})?).map_err(lost)
    }

    /// Returns the contents that an opening for writing will find, without changing the disk; `None` after an injected
    /// fault. Pages that may be evicted are read past the cache. After a failed sync, a reader's cache and the disk may
    /// differ in words that were stored and never flushed; both are legal.
    pub(super) fn find(&self, shared: &Shared, faults: bool) -> Result<Option<Vec<u8>>, Wrong> {
        let shown = self.read().map(Some).or_else(|error| refused(error, faults))?;
        let (Some(shown), Some(_)) = (&shown, self.memory_bytes_max) else { return Ok(shown) };
        if !shared.lock().0.allows(shown, self.before) {
            return Err(Wrong::Contents(format!("for a reader: {}", shared.lock().0.difference(shown))));
        }
        let copy = Life { disk: self.disk.copy(), ..*self };
        let found = copy.open().and_then(|journal| whole(&journal).map_err(lost));
        found.map(Some).map_err(Wrong::DoesNotOpen)
    }

    /// Opens the journal and compares it with `found`: in a random order of blocks, with or without a checkpoint in
    /// between, and completely or only in part before it is written to.
    pub(super) fn open_bit_by_bit(
        &self,
        found: &[u8],
        shared: &Shared,
        rng: &mut Rng,
    ) -> Result<Journaled<SimFile>, Wrong> {
        let journal = self.open().map_err(Wrong::DoesNotOpen)?;
        // Not before opening for writing: the data that a read-only opening sees may exist only in the operating
        // system's cache.
        if !shared.lock().0.accept(found, self.before) {
            return Err(Wrong::Contents(format!("after opening: {}", shared.lock().0.difference(found))));
        }
        for _ in 0..rng.usize(0..3) {
            let page = Offset(rng.u64(0..journal.len_bytes() / PAGE_BYTES) * PAGE_BYTES);
            let words = page.0 as usize..page.0 as usize + 8;
            let word = u64::from_ne_bytes(found[words].try_into().expect("a word has eight bytes"));
            let shown = if rng.bool() { journal.peek(page) } else { journal.load(page, Ordering::Relaxed) };
            if shown != word && journal.check_lost_ranges().is_ok() {
                return Err(Wrong::Contents(format!("in the first word of {page:?}")));
            }
        }
        if rng.bool() {
            let _ = journal.checkpoint();
        }
        if rng.u8(0..3) > 0 || journal.health().is_err() {
            match whole(&journal) {
                Ok(shown) if shown == found => {}
                Ok(_) => return Err(Wrong::Contents("when it is read block by block".into())),
                Err(error) => return Err(Wrong::DoesNotOpen(lost(error))),
            }
        }
        Ok(journal)
    }
}

/// Returns `None` if the opening failed because of an injected fault.
pub(super) fn refused<T>(error: JournalError, faults: bool) -> Result<Option<T>, Wrong> {
    match error {
        JournalError::Io { .. } if faults => Ok(None),
        error => Err(Wrong::DoesNotOpen(error)),
    }
}

fn lost(error: MediumError) -> JournalError {
    JournalError::Io { which: Which::Base, doing: "read", source: io::Error::other(error) }
}
