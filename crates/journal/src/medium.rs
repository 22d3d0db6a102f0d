//! The journaled region as a medium.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use pmem::{
    Acknowledge, Bytes, Canary, Durability, LINE_BYTES, Level, Medium, MediumError, Offset, Persist, Residency, Space,
    Span, Taken, Ticket, Waited,
};

use crate::options::entry_bytes_max;
use crate::region::PAGE_BYTES;
use crate::{File, Journaled, broken, canary};

impl<F: File> Journaled<F> {
    /// # Panics
    /// As for [`Bytes::target`].
    #[cold]
    #[inline(never)]
    fn target_slowly(&self, at: Offset, len_bytes: u64) {
        let region_bytes = if self.is_writable() { self.len_bytes() } else { 0 };
        let is_inside = at.span(len_bytes).end().is_some_and(|end| end <= region_bytes);
        assert!(
            is_inside,
            "{len_bytes} bytes at offset {:#x} lie outside the {region_bytes} bytes that may be stored to",
            at.0
        );
        // Stores to lost blocks are allowed: none of them becomes durable.
        let _ = self.journal.loader.reach(at.span(len_bytes));
    }

    /// Appends the memory's content at `span`, which is not longer than an entry may be. Words are read one by one,
    /// because words adjacent to a flushed word may belong to another thread.
    fn append_from_memory(&self, span: Span) {
        let (first, end) = (span.start.0 & !7, span.start.0 + span.len_bytes);
        let Some(mut append) = self.journal.reserve(1, span.len_bytes as usize) else { return };
        append.push(span.start, span.len_bytes as usize, |frame| {
            let from = frame.len();
            for at in (first..end).step_by(8) {
                frame.extend(self.load(Offset(at), Ordering::Relaxed).to_ne_bytes());
            }
            frame.truncate(from + (end - first) as usize);
            frame.drain(from..from + (span.start.0 - first) as usize);
        });
    }

    /// Cuts `span` into pieces that fit into an entry.
    fn pieces(&self, span: Span) -> impl Iterator<Item = Span> {
        let piece_bytes = entry_bytes_max(self.journal.log.segments().capacity_bytes()) as u64;
        let end = span.start.0 + span.len_bytes;
        (span.start.0..end).step_by(piece_bytes as usize).map(move |at| Offset(at).span(piece_bytes.min(end - at)))
    }
}

// SAFETY: the base is the start of memory of `len_bytes` bytes, aligned to 1 GiB, that was allocated before the
// length covered it; it stays in place until the medium is dropped, and the length never shrinks.
unsafe impl<F: File> Bytes for Journaled<F> {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.journal.loader.region().memory.base()
    }

    #[inline(always)]
    fn len_bytes(&self) -> u64 {
        self.journal.loader.region().len_bytes()
    }

    #[inline(always)]
    fn is_writable(&self) -> bool {
        self.journal.options.writable
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn target(&self, at: Offset, len_bytes: u64) -> *mut u8 {
        let writable_bytes = self.journal.loader.region().writable_bytes();
        if at.span(len_bytes).end().is_none_or(|end| end > writable_bytes) {
            self.target_slowly(at, len_bytes);
        }
        // SAFETY: the bytes are in the region (just checked), all of which is one contiguous range of memory.
        unsafe { self.journal.loader.region().memory.base().as_ptr().add(at.0 as usize) }
    }

    #[inline]
    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        at.expect_aligned(16);
        let len_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let padded_bytes = len_bytes.next_multiple_of(16);
        let mut target = self.target(at, padded_bytes);
        for part in parts {
            // SAFETY: the target is as long as the padded parts, and only the caller uses it.
            unsafe {
                target.copy_from_nonoverlapping(part.as_ptr(), part.len());
                target = target.add(part.len());
            }
        }
        // SAFETY: as above.
        unsafe { target.write_bytes(0, (padded_bytes - len_bytes) as usize) };
        self.flush(at.span(padded_bytes));
    }

    /// Changes only this process' memory: nothing of it reaches the files of a journal that is open for reading.
    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        if self.is_writable() {
            return Err(MediumError::ReadOnly);
        }
        self.check(at.span(bytes.len() as u64))?;
        // SAFETY: the bytes are in the region (just checked) and in memory; only the caller uses them.
        unsafe { self.base().as_ptr().add(at.0 as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    #[inline(always)]
    fn check(&self, span: Span) -> Result<(), MediumError> {
        if span.end().is_none_or(|end| end > self.journal.loader.region().readable_bytes()) {
            return self.journal.loader.reach(span);
        }
        Ok(())
    }
}

impl<F: File> Persist for Journaled<F> {
    fn durability(&self) -> Durability {
        self.journal.options.level
    }

    #[inline(always)]
    fn health(&self) -> Result<(), MediumError> {
        self.journal.health.check()
    }

    /// Returns true: opening has put the region's content into the log and synced it.
    fn opens_durable(&self) -> bool {
        true
    }

    fn flush(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        if self.breaks(canary::LOG_ORDER_UNLIKE_STORES) {
            return broken::hold(self, self.pieces(span));
        }
        self.pieces(span).for_each(|piece| self.append_from_memory(piece));
    }

    /// Does nothing: a log has an order.
    #[inline(always)]
    fn order(&self) {}

    /// Publishes words. They are in the log before any thread can load them: both happen under the buffer's lock,
    /// in the order in which the words' owner stores them. On a poisoned log nothing is stored.
    fn publish(&self, words: &[(Offset, u64)], key: u64) -> Taken {
        if self.breaks(canary::LOG_ORDER_UNLIKE_STORES) {
            return broken::publish_late(self, words, key);
        }
        // No file is used under the lock.
        let (last, before) = words.split_last().expect("something is published");
        self.assert_within(last.0.line(), LINE_BYTES);
        let Some(mut append) = self.journal.reserve(words.len(), words.len() * 8) else { return Taken::No };
        for &(at, word) in before {
            append.push_word(at, word);
            self.store(at, word, Ordering::Release);
        }
        append.push_word(last.0, last.1);
        if !self.breaks(canary::PUBLISHED_UNNOTED) {
            append.note_published(key);
        }
        self.store(last.0, last.1, Ordering::Release);
        drop(append);
        Taken::Yes
    }

    fn commit_published(&self, _at: Offset, key: u64) -> Ticket {
        Ticket(self.journal.log.appender().published(key))
    }

    fn commit(&self, _level: Level) -> Ticket {
        if self.breaks(canary::LOG_ORDER_UNLIKE_STORES) {
            broken::append_held(self);
        }
        Ticket(self.journal.log.taken_in())
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.journal.log.wait(ticket.0, self.journal.log.level())
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.journal.log.wait(self.journal.log.taken_in(), Durability::Power)
    }
}

impl<F: File> Acknowledge for Journaled<F> {
    #[inline]
    fn acknowledge(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.journal.log.acknowledge(ticket.0)
    }

    #[inline]
    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.journal.log.acknowledge_now(ticket.0)
    }

    #[inline]
    fn deferred(&self) -> Option<Ticket> {
        Some(Ticket(self.journal.log.deferred()))
    }
}

impl<F: File> Residency for Journaled<F> {
    #[inline(always)]
    fn check_lost_ranges(&self) -> Result<(), MediumError> {
        self.journal.loader.losses()
    }

    fn populate(&self, span: Span) {
        let end = span.end().unwrap_or(u64::MAX).min(self.len_bytes());
        let start = span.start.0 - span.start.0 % PAGE_BYTES;
        if start < end && self.in_owner() {
            self.journal.loader.region().memory.populate(start..end.next_multiple_of(PAGE_BYTES));
        }
    }

    #[inline]
    fn peek(&self, at: Offset) -> u64 {
        let is_absent = at.0 >= self.journal.loader.region().readable_bytes();
        let peeked = if is_absent { self.journal.loader.peek(at) } else { None };
        peeked.unwrap_or_else(|| self.load(at, Ordering::Relaxed))
    }

    fn prefetch(&self, span: Span) {
        self.journal.loader.expect(span);
    }

    fn prefetch_peek(&self, at: Offset) {
        self.journal.loader.expect_page(at);
    }
}

impl<F: File> Space for Journaled<F> {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.grow_to(to_bytes)
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            self.journal.checkpointer.spaces().discard(self.journal.loader.region(), self.journal.log.appender(), span)
        }
    }

    fn allocate(&self, span: Span) -> Result<(), MediumError> {
        self.journal.checkpointer.spaces().allocate(self.journal.loader.region(), span)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.journal.checkpointer.spaces().allocated_bytes()
    }
}

impl<F: File> Medium for Journaled<F> {
    fn name(&self) -> &'static str {
        self.journal.options.name
    }

    fn is_journaled(&self) -> bool {
        true
    }

    #[inline(always)]
    fn breaks(&self, canary: Canary) -> bool {
        self.journal.log.file().file().breaks(canary)
    }
}
