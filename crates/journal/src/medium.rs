//! The journaled region as a medium.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use epoch::Pin;
use pmem::{
    Acknowledge, Bytes, Canary, Durability, LINE_BYTES, Level, Medium, MediumError, Offset, Persist, Space, Span,
    Taken, Ticket, Waited, arch,
};

use crate::options::entry_bytes_max;
use crate::region::PAGE_BYTES;
use crate::{File, Journaled, broken, canary};

impl<F: File> Journaled<F> {
    /// Pins the thread if pages may be evicted while it uses them.
    #[inline]
    pub(crate) fn hold(&self) -> Option<Pin> {
        self.journal.loader.is_paged().then(epoch::pin)
    }

    /// Returns true if `len_bytes` bytes at `at` are in the region and in memory for certain. Costs one comparison.
    #[inline(always)]
    fn is_readable(&self, at: Offset, len_bytes: u64) -> bool {
        at.span(len_bytes).end().is_some_and(|end| end <= self.journal.loader.region().readable_bytes())
    }

    /// Like [`Self::is_readable`], for a store.
    #[inline(always)]
    fn is_storable(&self, at: Offset, len_bytes: u64) -> bool {
        at.span(len_bytes).end().is_some_and(|end| end <= self.journal.loader.region().writable_bytes())
    }

    /// Returns the address of `at`, which is in the region.
    #[inline(always)]
    fn address(&self, at: Offset) -> *mut u8 {
        // SAFETY: the offset is in the region, all of which is one contiguous range of memory.
        unsafe { self.base().as_ptr().add(at.0 as usize) }
    }

    /// Returns the word at `at`, which is in the region.
    #[inline(always)]
    fn word_there(&self, at: Offset) -> &AtomicU64 {
        at.expect_aligned(8);
        // SAFETY: the word is aligned and in the region; words that several threads access are accessed atomically.
        unsafe { AtomicU64::from_ptr(self.address(at).cast()) }
    }

    /// Runs `store` while `len_bytes` bytes at `at` are in memory.
    ///
    /// # Panics
    /// As for [`Bytes::target`].
    #[cold]
    #[inline(never)]
    fn store_slowly<R>(&self, at: Offset, len_bytes: u64, store: impl FnOnce() -> R) -> R {
        let _pin = self.hold();
        self.target_slowly(at, len_bytes);
        store()
    }

    /// Gives up the content of the whole pages in `span`, if they may be evicted.
    pub(crate) fn overwrite_pages(&self, span: Span) {
        let loader = &self.journal.loader;
        if let Some(pager) = loader.pager() {
            pager.overwrite(loader.region(), span, self.breaks(canary::OVERWRITTEN_IN_PART));
        }
    }

    /// Like [`Self::store_slowly`], for a `store` that stores to all of these bytes: whole pages need not be read.
    ///
    /// # Panics
    /// As for [`Bytes::target`].
    #[cold]
    #[inline(never)]
    fn overwrite_slowly<R>(&self, at: Offset, len_bytes: u64, store: impl FnOnce() -> R) -> R {
        let _pin = self.hold();
        if len_bytes >= PAGE_BYTES {
            self.overwrite_pages(at.span(len_bytes));
        }
        self.target_slowly(at, len_bytes);
        store()
    }

    /// Runs `load` while `len_bytes` bytes at `at` are in memory.
    ///
    /// # Panics
    /// As for [`Bytes::load`].
    #[cold]
    #[inline(never)]
    fn load_slowly<R>(&self, at: Offset, len_bytes: u64, load: impl FnOnce() -> R) -> R {
        let _pin = self.hold();
        self.assert_within(at, len_bytes);
        load()
    }

    /// # Panics
    /// As for [`Bytes::target`].
    fn target_slowly(&self, at: Offset, len_bytes: u64) {
        let region_bytes = if self.is_writable() { self.len_bytes() } else { 0 };
        let is_inside = at.span(len_bytes).end().is_some_and(|end| end <= region_bytes);
        assert!(
            is_inside,
            "{len_bytes} bytes at offset {:#x} lie outside the {region_bytes} bytes that may be stored to",
            at.0
        );
        // Stores to lost blocks are allowed: none of them becomes durable.
        let _ = self.journal.loader.reach_to_store(at.span(len_bytes));
    }

    /// Appends the memory's content at `span`, which is in memory, and not longer than an entry may be. Words are
    /// read one by one, because words adjacent to a flushed word may belong to another thread.
    fn append_from_memory(&self, span: Span) {
        let (first, end) = (span.start.0 & !7, span.start.0 + span.len_bytes);
        let Some(mut append) = self.journal.reserve(1, span.len_bytes as usize) else { return };
        append.push(span.start, span.len_bytes as usize, |frame| {
            let from = frame.len();
            for at in (first..end).step_by(8) {
                frame.extend(self.word_there(Offset(at)).load(Ordering::Relaxed).to_ne_bytes());
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

    #[inline(always)]
    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        if self.is_readable(at, 8) {
            return self.word_there(at).load(ordering);
        }
        self.load_slowly(at, 8, || self.word_there(at).load(ordering))
    }

    #[inline(always)]
    fn match4(&self, at: Offset, word: u64) -> u32 {
        at.expect_aligned(32);
        // SAFETY: the 32 bytes are in the region (the caller of the closure has checked it) and aligned.
        let matches = || unsafe { arch::match4(self.address(at).cast(), word) };
        if self.is_readable(at, 32) { matches() } else { self.load_slowly(at, 32, matches) }
    }

    #[inline(always)]
    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        if self.is_storable(at, 8) {
            return self.word_there(at).store(word, ordering);
        }
        self.store_slowly(at, 8, || self.word_there(at).store(word, ordering));
    }

    #[inline(always)]
    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        let exchange = || self.word_there(at).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire);
        if self.is_storable(at, 8) { exchange() } else { self.store_slowly(at, 8, exchange) }
    }

    #[inline(always)]
    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        let len_bytes = bytes.len() as u64;
        // SAFETY: the target is in the region (the caller of the closure has checked it), and only the caller uses it.
        let copy = || unsafe { self.address(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        if self.is_storable(at, len_bytes) { copy() } else { self.overwrite_slowly(at, len_bytes, copy) }
    }

    #[inline]
    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        at.expect_aligned(16);
        let len_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let padded_bytes = len_bytes.next_multiple_of(16);
        let copy = || {
            let mut target = self.address(at);
            for part in parts {
                // SAFETY: the target is as long as the padded parts, and only the caller uses it.
                unsafe {
                    target.copy_from_nonoverlapping(part.as_ptr(), part.len());
                    target = target.add(part.len());
                }
            }
            // SAFETY: as above.
            unsafe { target.write_bytes(0, (padded_bytes - len_bytes) as usize) };
        };
        if self.is_storable(at, padded_bytes) {
            copy()
        } else {
            self.overwrite_slowly(at, padded_bytes, copy)
        }
        self.flush(at.span(padded_bytes));
    }

    /// Changes only this process' memory: nothing of it reaches the files of a journal that is open for reading.
    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        if self.is_writable() {
            return Err(MediumError::ReadOnly);
        }
        self.journal.loader.keep(at.span(bytes.len() as u64))?;
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
        let _pin = self.hold();
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
        let _pin = self.hold();
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

impl<F: File> Space for Journaled<F> {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.grow_to(to_bytes)
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        let (loader, spaces) = (&self.journal.loader, self.journal.checkpointer.spaces());
        // SAFETY: the caller's promise.
        unsafe { spaces.discard((loader.region(), loader.is_paged()), self.journal.log.appender(), span) }
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
