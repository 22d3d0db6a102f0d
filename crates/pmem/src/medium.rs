//! The medium: every store to persistent memory, and what makes it durable.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::{Canary, Counts, Durability, Level, MediumError, Offset, Span, Ticket, Waited, arch};

/// Persistent memory: a region of bytes, the stores to it, and their durability.
///
/// Order and commit are two things: [`Medium::order`] says what comes first, [`Medium::commit`] asks for durability. On
/// memory both are a fence; on a log the first is free and the second is a sync that writers share.
///
/// Shared words are reached only through [`Medium::load`], [`Medium::store`], [`Medium::compare_exchange`] and
/// [`Medium::publish`], so that a model checker's medium can stand in.
///
/// # Panics
/// Every access is checked against the region's size; an access outside it is a bug of the caller and panics. Offsets
/// read from the region, which damage can change, are checked by [`Medium::item`], which answers with an error.
///
/// # Safety
/// `base()` points at `len_bytes()` readable bytes (writable unless the medium is read-only), aligned to 4096, which
/// stay put while the medium lives; `len_bytes()` never shrinks. Stores take effect in that memory at once.
pub unsafe trait Medium: Send + Sync + 'static {
    /// The region's first byte.
    fn base(&self) -> NonNull<u8>;

    /// The region's present size.
    fn len_bytes(&self) -> u64;

    /// What acknowledged writes survive here.
    fn durability(&self) -> Durability;

    /// A short name for stats and banners, such as `tmpfs` or `dax`.
    fn name(&self) -> &'static str;

    /// False where nothing may be stored.
    fn is_writable(&self) -> bool {
        true
    }

    /// What speaks against further writes, though the medium was opened for them.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    #[inline(always)]
    fn health(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// An error where part of the region could not be read and is lost: words there read as zeros that mean nothing. A reader that
    /// concludes from words that something is *not* there asks this first.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`].
    #[inline(always)]
    fn losses(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// True where stores become durable through a log: the file behind the region is not the region by itself.
    fn is_journaled(&self) -> bool {
        false
    }

    /// Stores one aligned word atomically.
    fn store(&self, at: Offset, word: u64, ordering: Ordering);

    /// Replaces one aligned word if it is `current`: (AcqRel, Acquire). The word found is returned.
    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64>;

    /// Copies `bytes` into the region through the cache.
    ///
    /// # Safety
    /// The caller alone uses the span: no reference into it lives and no other thread touches it.
    unsafe fn write(&self, at: Offset, bytes: &[u8]);

    /// Writes the concatenation of `parts`, past the cache where that is faster, and flushes it. Up to 15 bytes after
    /// the end, to the next multiple of 16, become zero.
    ///
    /// # Safety
    /// As for [`Medium::write`], for the span rounded up to 16 bytes.
    ///
    /// # Panics
    /// If `at` is not a multiple of 16.
    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]);

    /// Starts write-back of exactly the bytes that their owner stored.
    fn flush(&self, span: Span);

    /// What was flushed before is durable before anything flushed after.
    fn order(&self);

    /// Makes words of one line visible and starts making them durable: one after the other, then the write-back of their
    /// line. Stores to one line become durable in this order, and the last is the commit point. All are stored with Release: a
    /// reader may conclude from the first alone.
    ///
    /// `key` stands for what the words say, for [`Medium::commit_published`]. The engine chooses it: what stays the same when
    /// the words are copied elsewhere, or the last word's address.
    ///
    /// # Panics
    /// If there is no word.
    #[inline(always)]
    fn publish(&self, words: &[(Offset, u64)], _key: u64) {
        for &(at, word) in words {
            self.store(at, word, Ordering::Release);
        }
        self.flush(words[words.len() - 1].0.span(8));
    }

    /// When the words published as `key`, the last one at `at`, are durable: for a thread that reads them before their publisher
    /// has waited. A log holds those words already, and returns the point of their publication or a later one, but none that lies
    /// in the future.
    fn commit_published(&self, at: Offset, _key: u64) -> Ticket {
        self.flush(at.span(8));
        self.commit(Level::Strongest)
    }

    /// Asks that everything flushed so far become durable.
    fn commit(&self, level: Level) -> Ticket;

    /// Returns once what [`Medium::commit`] asked for is durable.
    fn wait(&self, ticket: Ticket) -> Result<(), MediumError>;

    /// As [`Medium::wait`], unless the calling thread said that it will wait itself, and with what it then tells (a log's
    /// medium has a way to say so).
    ///
    /// # Errors
    /// As for [`Medium::wait`].
    #[inline(always)]
    fn acknowledge(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// As [`Medium::wait`], but without waiting for a disk: for a caller that holds locks.
    ///
    /// # Errors
    /// As for [`Medium::wait`].
    #[inline(always)]
    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.wait(ticket).map(|()| Waited::Durable)
    }

    /// As [`Medium::acknowledge`], for a caller that has written nothing, only read what others wrote. Where the medium has failed,
    /// an error for what is not durable: then there is nothing to wait for, and nothing to tell.
    ///
    /// # Errors
    /// As for [`Medium::wait`].
    #[inline(always)]
    fn acknowledge_met(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        if self.health().is_ok() { self.acknowledge(ticket) } else { self.acknowledge_now(ticket) }
    }

    /// When everything is durable that was published by callers which went on without waiting: for a reader that meets its effect
    /// elsewhere than in the entry itself. `None` where no reader can.
    #[inline(always)]
    fn deferred(&self) -> Option<Ticket> {
        None
    }

    /// Makes what was flushed as durable as the medium can, where commits promise less.
    ///
    /// # Errors
    /// As for [`Medium::wait`].
    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Makes the region at least `to_bytes` long; new bytes are zero. The region does not move.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Limit`], and nothing has changed.
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError>;

    /// Gives the space of the whole pages within `span` back, where the medium can: how many bytes; 0 where it cannot. What the
    /// pages hold from then on is undefined, for loads and after a crash. Ordered as a flush is: what was ordered before is durable
    /// before it. It is not durable itself: after a crash the space may be taken still, or again.
    ///
    /// # Safety
    /// The caller alone uses the span: no reference into it lives and no other thread touches it. Nobody stores to those
    /// pages before [`Medium::back`] has taken space for them, in this process or a later one.
    unsafe fn discard(&self, _span: Span) -> u64 {
        0
    }

    /// Takes space for all pages that `span` touches, as far as they have none: stores to them find it. Bytes that were
    /// there stay.
    ///
    /// # Errors
    /// [`MediumError::Full`], and nothing has changed that matters.
    fn back(&self, _span: Span) -> Result<(), MediumError> {
        Ok(())
    }

    /// The space that the region takes, holes not counted, if the medium knows.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }

    /// Prepares pages so that later stores to `span` do not fault. A hint.
    fn populate(&self, _span: Span) {}

    /// The caller is in the middle of a long walk and holds no lock: a host that takes no processor away from its threads by
    /// itself, as a kernel, lets others run.
    #[inline(always)]
    fn breathe(&self) {}

    /// How often the medium flushed and fenced, if it counts them.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// Asks the cache for lines that [`Medium::stream`] is going to write, if it writes through the cache. A hint.
    #[inline(always)]
    fn prefetch_for_stream(&self, _span: Span) {}

    /// True on a crash medium that was asked to break this step; see [`Canary`].
    #[inline(always)]
    fn breaks(&self, _canary: Canary) -> bool {
        false
    }

    /// Loads one aligned word atomically.
    #[inline(always)]
    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        self.word(at).load(ordering)
    }

    /// Loads the four words at `at` (32-byte aligned), each atomically with `Acquire`, one after the other.
    #[inline(always)]
    fn load4(&self, at: Offset) -> [u64; 4] {
        core::array::from_fn(|i| self.load(at.plus(8 * i as u64), Ordering::Acquire))
    }

    /// An acquire fence: what was loaded so far, in whatever way, is not newer than what is loaded from now on. For a reader that
    /// concludes from words that something is not there.
    #[inline(always)]
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }

    /// As [`Medium::load`] with `Relaxed`, for a caller that does not look at the word's neighbours: a medium whose memory is still
    /// to be filled need not fill it there.
    #[inline(always)]
    fn peek(&self, at: Offset) -> u64 {
        self.load(at, Ordering::Relaxed)
    }

    /// `span` is about to be read. A hint: where memory is still to be filled it is filled there early.
    #[inline(always)]
    fn expect(&self, _span: Span) {}

    /// `at` is about to be peeked at. A hint. Any offset will do.
    #[inline(always)]
    fn expect_peek(&self, _at: Offset) {}

    /// Sees that `span` lies in the region, and that its bytes are in memory. Every access comes by here, or by a check of
    /// its own that does the same.
    ///
    /// # Errors
    /// [`MediumError::OutOfBounds`]; [`MediumError::Unreadable`] if a part of it was lost.
    #[inline(always)]
    fn reach(&self, span: Span) -> Result<(), MediumError> {
        let region_bytes = self.len_bytes();
        if !span.lies_within(region_bytes) {
            let Span { start, len_bytes } = span;
            return Err(MediumError::OutOfBounds { offset: start.0, len_bytes, region_bytes });
        }
        Ok(())
    }

    /// The bytes of `span`.
    ///
    /// # Errors
    /// As for [`Medium::reach`].
    ///
    /// # Safety
    /// Nobody stores to the span while the slice lives: it is private to the caller, or published and pinned.
    #[inline(always)]
    unsafe fn item(&self, span: Span) -> Result<&[u8], MediumError> {
        self.reach(span)?;
        // SAFETY: the span lies in the region (just checked), which stays put while `self` is borrowed; the caller
        // promises that nobody stores to it meanwhile.
        Ok(unsafe {
            core::slice::from_raw_parts(self.base().as_ptr().add(span.start.0 as usize), span.len_bytes as usize)
        })
    }

    /// Asks the cache for the line of `at`. Any offset will do: a wrong one costs time only.
    #[inline(always)]
    fn prefetch(&self, at: Offset) {
        arch::prefetch(self.base().as_ptr().wrapping_add(at.0 as usize));
    }

    /// Which of the four words at `at` (32-byte aligned) equal `word`: bit i for word i. Each word is loaded atomically.
    #[inline(always)]
    fn match4(&self, at: Offset, word: u64) -> u32 {
        self.check(at, 32);
        at.expect_aligned(32);
        // SAFETY: the 32 bytes lie in the region (just checked) and are aligned.
        unsafe { arch::match4(self.base().as_ptr().add(at.0 as usize).cast(), word) }
    }

    /// The atomic word at `at`. For implementations of media only: a store through it is not seen.
    #[doc(hidden)]
    #[inline(always)]
    fn word(&self, at: Offset) -> &AtomicU64 {
        self.check(at, 8);
        at.expect_aligned(8);
        // SAFETY: the word lies in the region (just checked), is aligned, and stays put while `self` is borrowed; words
        // that several threads reach are only ever accessed atomically.
        unsafe { AtomicU64::from_ptr(self.base().as_ptr().add(at.0 as usize).cast()) }
    }

    /// Panics unless `len_bytes` at `at` lie in the region. What of them was lost is zeros: see [`Medium::losses`].
    #[doc(hidden)]
    #[inline(always)]
    fn check(&self, at: Offset, len_bytes: u64) {
        if let Err(MediumError::OutOfBounds { .. }) = self.reach(at.span(len_bytes)) {
            out_of_bounds(at, len_bytes, self.len_bytes());
        }
    }
}

#[cold]
#[inline(never)]
fn out_of_bounds(at: Offset, len_bytes: u64, region_bytes: u64) -> ! {
    panic!("{len_bytes} bytes at offset {:#x} lie outside the region of {region_bytes} bytes", at.0)
}
