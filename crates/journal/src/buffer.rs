//! The log in memory: entries in the order of the appends, until a writer takes them.
//!
//! An entry gets its position in the log under the buffer's lock, and the entry's bytes are read, or the words
//! stored, under the same lock. So if bytes are flushed twice, even by two threads, the log has the older ones
//! before the newer ones, and no reader finds a published word that the log does not contain.

use std::mem;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use pmem::Offset;

use crate::File;
use crate::dirty::DirtyPages;
use crate::frame::{ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, pad, push_entry_head};
use crate::journal::Journal;
use crate::options::frame_bytes_max;

/// The entries that were appended and not yet taken: a frame without its header, for which there is space.
#[derive(Debug)]
pub(crate) struct Buffer {
    frame: Vec<u8>,
    /// The region's length, if all entries count.
    region_bytes: u64,
    /// Pages with entries that no checkpoint has applied.
    pub(crate) dirty: DirtyPages,
    /// Entries that a broken variant appends only at a commit, the last first.
    pub(crate) held: Vec<(Offset, Vec<u8>)>,
}

impl Buffer {
    pub(crate) fn new(region_bytes: u64, dirty: DirtyPages) -> Buffer {
        Buffer { frame: vec![0; FRAME_HEADER_BYTES], region_bytes, dirty, held: Vec::new() }
    }

    /// Takes the frame and leaves `empty`, a vector of any content, instead. Also returns the region's length after
    /// the frame.
    pub(crate) fn take(&mut self, mut empty: Vec<u8>) -> (Vec<u8>, u64) {
        empty.clear();
        empty.resize(FRAME_HEADER_BYTES, 0);
        (mem::replace(&mut self.frame, empty), self.region_bytes)
    }

    fn has_space_for(&self, bytes: usize, frame_bytes_max: usize) -> bool {
        self.frame.len() + bytes <= frame_bytes_max || self.frame.len() == FRAME_HEADER_BYTES
    }

    /// Appends an entry of `len_bytes` at `at`, whose bytes `fill` adds to the frame.
    pub(crate) fn push(&mut self, at: Offset, len_bytes: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.dirty.mark(at.0, len_bytes as u64);
        push_entry_head(&mut self.frame, at, len_bytes);
        fill(&mut self.frame);
        pad(&mut self.frame);
    }

    /// Appends the region's new length, which the base already has durably.
    pub(crate) fn push_growth(&mut self, region_bytes: u64) {
        self.push(Offset(region_bytes), 0, |_| ());
        self.region_bytes = region_bytes;
    }

    /// Appends an entry that changes nothing, so that there is a frame.
    fn push_nothing(&mut self) {
        self.push_growth(self.region_bytes);
    }

    pub(crate) fn push_word(&mut self, at: Offset, word: u64) {
        self.push(at, 8, |frame| frame.extend(word.to_ne_bytes()));
    }
}

impl<F: File> Journal<F> {
    /// Returns the buffer, locked, with space for entries of `len_bytes` together; `None` on a poisoned log. Writes
    /// out entries that are in the way. If no segment is free in addition to the one that is written, waits for a
    /// checkpoint: the frame at a writer and the frame in the buffer have space in that segment. So no writer waits
    /// for a checkpoint, and a checkpoint can wait for writers.
    #[inline]
    pub(crate) fn reserve(&self, entry_count: usize, len_bytes: usize) -> Option<Append<'_, F>> {
        let wanted_bytes = entry_count * ENTRY_HEADER_BYTES + len_bytes.next_multiple_of(8);
        loop {
            self.healthy().ok()?;
            let buffer = self.append.buffer.lock();
            let has_spare = self.segments.has_spare.load(Ordering::Relaxed);
            if has_spare && buffer.has_space_for(wanted_bytes, frame_bytes_max(self.capacity_bytes())) {
                return Some(Append { journal: self, before_bytes: buffer.frame.len(), buffer });
            }
            drop(buffer);
            if has_spare { self.write_out(self.to_be_synced()).map(drop) } else { self.await_spare() }.ok()?;
        }
    }
}

impl<F: File> Journal<F> {
    /// Appends an empty entry, so that a frame, and with it a mark, follows the entries so far. Returns the log's
    /// positions before and after it. Never waits for space: there is some for the few entries that a checkpoint
    /// appends while no other thread may append.
    pub(crate) fn append_mark(&self) -> (u64, u64) {
        let buffer = self.append.buffer.lock();
        let before = self.append.appended.load(Ordering::Relaxed);
        let mut append = Append { journal: self, before_bytes: buffer.frame.len(), buffer };
        append.buffer.push_nothing();
        (before, append.position())
    }
}

/// The locked buffer. Its entries count as appended when it is dropped.
pub(crate) struct Append<'a, F: File> {
    journal: &'a Journal<F>,
    before_bytes: usize,
    pub(crate) buffer: MutexGuard<'a, Buffer>,
}

impl<F: File> Append<'_, F> {
    /// Returns the log's position behind the entries.
    pub(crate) fn position(&self) -> u64 {
        self.journal.append.appended.load(Ordering::Relaxed) + self.bytes()
    }

    fn bytes(&self) -> u64 {
        (self.buffer.frame.len() - self.before_bytes) as u64
    }
}

impl<F: File> Drop for Append<'_, F> {
    fn drop(&mut self) {
        self.journal.append.appended.fetch_add(self.bytes(), Ordering::Release);
    }
}
