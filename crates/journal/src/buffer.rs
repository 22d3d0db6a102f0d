//! The log in memory: entries in the order of the appends, until a writer takes them.
//!
//! An entry gets its position in the log under the buffer's lock, and the entry's bytes are read, or the words
//! stored, under the same lock. So if bytes are flushed twice, even by two threads, the log has the older ones
//! before the newer ones, and no reader finds a published word that the log does not contain.

use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use pmem::Offset;

use crate::dirty::DirtyPages;
use crate::durable::FIRST_POSITION;
use crate::frame::{FRAME_HEADER_BYTES, pad, push_entry_head};
use crate::published::Published;
use crate::slots::SlotTable;

/// The entries that were appended and not yet taken: a frame without its header, for which there is space.
#[derive(Debug)]
struct Buffer {
    frame: Vec<u8>,
    /// The region's length, if all entries count.
    region_bytes: u64,
    /// Pages with entries that no checkpoint has applied.
    dirty: DirtyPages,
    /// Entries that a broken variant appends only at a commit, the last first.
    held: Vec<(Offset, Vec<u8>)>,
}

impl Buffer {
    fn new(region_bytes: u64, dirty: DirtyPages) -> Buffer {
        Buffer { frame: vec![0; FRAME_HEADER_BYTES], region_bytes, dirty, held: Vec::new() }
    }

    /// Takes the frame and leaves `empty`, a vector of any content, instead. Also returns the region's length after
    /// the frame.
    fn take(&mut self, mut empty: Vec<u8>) -> (Vec<u8>, u64) {
        empty.clear();
        empty.resize(FRAME_HEADER_BYTES, 0);
        (mem::replace(&mut self.frame, empty), self.region_bytes)
    }

    #[inline]
    fn has_space_for(&self, bytes: usize, frame_bytes_max: usize) -> bool {
        self.frame.len() + bytes <= frame_bytes_max || self.frame.len() == FRAME_HEADER_BYTES
    }

    /// Appends an entry of `len_bytes` at `at`, whose bytes `fill` adds to the frame.
    fn push(&mut self, at: Offset, len_bytes: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.dirty.mark(at.0, len_bytes as u64);
        push_entry_head(&mut self.frame, at, len_bytes);
        fill(&mut self.frame);
        pad(&mut self.frame);
    }

    /// Appends the region's new length, which the base already has durably.
    fn push_growth(&mut self, region_bytes: u64) {
        self.push(Offset(region_bytes), 0, |_| ());
        self.region_bytes = region_bytes;
    }

    /// Appends an entry that changes nothing, so that there is a frame.
    fn push_nothing(&mut self) {
        self.push_growth(self.region_bytes);
    }
}

/// The reason why there is no space for an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoSpaceReason {
    /// Entries in the buffer are in the way.
    Frame,
    /// No segment is free in addition to the one that is written.
    Segment,
    /// The log is ahead of the checkpoint in progress.
    Pace,
}

/// The entries that no writer has taken, and the positions of all that were ever appended.
#[derive(Debug)]
pub(crate) struct Appender {
    buffer: Mutex<Buffer>,
    /// The position up to which entries were appended; changes under the buffer's lock.
    appended: AtomicU64,
    /// Positions of published words that may not be durable.
    published: Published,
}

impl Appender {
    /// Creates the state without entries.
    pub(crate) fn new(region_bytes: u64, dirty: DirtyPages) -> Appender {
        Appender {
            buffer: Buffer::new(region_bytes, dirty).into(),
            appended: FIRST_POSITION.into(),
            published: Published::new(),
        }
    }

    /// Returns the buffer, locked, if it has space for `wanted_bytes` in a frame of at most `frame_bytes_max`, and if
    /// a segment is free: the frame at a writer and the frame in the buffer have space in that segment.
    #[inline]
    pub(crate) fn reserve(
        &self,
        wanted_bytes: usize,
        slots: &SlotTable,
        frame_bytes_max: impl Fn() -> usize,
    ) -> Result<Append<'_>, NoSpaceReason> {
        let buffer = self.buffer.lock();
        if !slots.has_spare() {
            return Err(NoSpaceReason::Segment);
        }
        if self.appended.load(Ordering::Relaxed) > slots.limit() {
            return Err(NoSpaceReason::Pace);
        }
        if !buffer.has_space_for(wanted_bytes, frame_bytes_max()) {
            return Err(NoSpaceReason::Frame);
        }
        Ok(Append { appender: self, before_bytes: buffer.frame.len(), buffer })
    }

    /// Appends an empty entry, so that a frame, and with it a mark, follows the entries so far. Returns the log's
    /// positions before and after it. Never waits for space: there is some for the few entries that a checkpoint
    /// appends while no other thread may append.
    pub(crate) fn append_mark(&self) -> (u64, u64) {
        let buffer = self.buffer.lock();
        let before = self.appended.load(Ordering::Relaxed);
        let mut append = Append { appender: self, before_bytes: buffer.frame.len(), buffer };
        append.buffer.push_nothing();
        (before, append.position())
    }

    /// Takes the frame as [`Buffer::take`] does. Also returns the position up to which it has entries.
    pub(crate) fn take(&self, empty: Vec<u8>) -> ((Vec<u8>, u64), u64) {
        let mut buffer = self.buffer.lock();
        (buffer.take(empty), self.appended())
    }

    /// Takes the marks of all pages with entries that no checkpoint has applied, and leaves `unmarked` instead.
    pub(crate) fn take_dirty(&self, unmarked: DirtyPages) -> DirtyPages {
        mem::replace(&mut self.buffer.lock().dirty, unmarked)
    }

    /// Returns the runs of these pages.
    pub(crate) fn dirty_runs(&self, run_bytes_max: u64) -> Vec<Range<u64>> {
        self.buffer.lock().dirty.runs(run_bytes_max).collect()
    }

    /// Returns the position up to which the log has entries.
    #[inline]
    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    /// Returns the position up to which the log has entries of everything that this thread has seen published: a
    /// writer that was about to append has done so.
    pub(crate) fn appended_by_now(&self) -> u64 {
        let _buffer = self.buffer.lock();
        self.appended.load(Ordering::Relaxed)
    }

    /// Returns the position of a published word, or a later one.
    #[inline]
    pub(crate) fn published(&self, key: u64) -> u64 {
        self.published.position(key)
    }

    /// Returns the entries that a broken variant holds back.
    pub(crate) fn held(&self) -> MappedMutexGuard<'_, Vec<(Offset, Vec<u8>)>> {
        MutexGuard::map(self.buffer.lock(), |buffer| &mut buffer.held)
    }
}

/// The locked buffer. Its entries count as appended when it is dropped.
pub(crate) struct Append<'a> {
    appender: &'a Appender,
    before_bytes: usize,
    buffer: MutexGuard<'a, Buffer>,
}

impl Append<'_> {
    /// Appends an entry as [`Buffer::push`] does.
    #[inline]
    pub(crate) fn push(&mut self, at: Offset, len_bytes: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.buffer.push(at, len_bytes, fill);
    }

    #[inline]
    pub(crate) fn push_word(&mut self, at: Offset, word: u64) {
        self.push(at, 8, |frame| frame.extend(word.to_ne_bytes()));
    }

    /// Appends the region's new length, which the base already has durably.
    pub(crate) fn push_growth(&mut self, region_bytes: u64) {
        self.buffer.push_growth(region_bytes);
    }

    /// Notes that the word published as `key` is in the log before the present position.
    #[inline]
    pub(crate) fn note_published(&self, key: u64) {
        self.appender.published.note(key, self.position());
    }

    /// Returns the log's position behind the entries.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.appender.appended.load(Ordering::Relaxed) + self.bytes()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        (self.buffer.frame.len() - self.before_bytes) as u64
    }
}

impl Drop for Append<'_> {
    #[inline]
    fn drop(&mut self) {
        self.appender.appended.fetch_add(self.bytes(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
