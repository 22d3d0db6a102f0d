//! The content of a medium: bytes at offsets, and words that several threads access.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::{MediumError, Offset, Span, arch};

/// A region of bytes, with its loads and stores.
///
/// Shared words are accessed only through [`Bytes::load`], [`Bytes::store`], [`Bytes::compare_exchange`] and
/// [`Persist::publish`](crate::Persist::publish), so that a model checker's medium can replace the real one. Stores go
/// to the memory at [`Bytes::base`]; a medium that observes them implements `store`, `compare_exchange`, `write` and
/// `stream` itself.
///
/// # Panics
/// Every access is checked against the region's size; an access outside it is a bug of the caller and panics.
/// Offsets read from the region, which damage can change, are checked by [`Bytes::bytes`], which returns an error.
///
/// # Safety
/// `base()` points to `len_bytes()` readable bytes (writable unless the medium is read-only), aligned to 4096,
/// which stay in place while the medium lives; `len_bytes()` never shrinks. Stores take effect in that memory
/// immediately.
pub unsafe trait Bytes: Send + Sync + 'static {
    /// Returns the address of the region's first byte.
    fn base(&self) -> NonNull<u8>;

    /// Returns the region's present size.
    fn len_bytes(&self) -> u64;

    /// Returns false if nothing may be stored.
    fn is_writable(&self) -> bool {
        true
    }

    /// Stores one aligned word atomically.
    #[inline(always)]
    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        self.target_word(at).store(word, ordering);
    }

    /// Replaces one aligned word if it is `current` (AcqRel, Acquire). Returns the word found.
    #[inline(always)]
    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.target_word(at).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    /// Copies `bytes` into the region through the cache.
    ///
    /// # Safety
    /// Only the caller uses the span: no reference into it lives and no other thread accesses it.
    #[inline(always)]
    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        let target = self.target(at, bytes.len() as u64);
        // SAFETY: the target is that long, and only the caller uses it, so `bytes` do not overlap it.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Writes the concatenation of `parts`, with non-temporal stores if they are faster, and flushes it. Up to 15
    /// bytes after the end, to the next multiple of 16, become zero.
    ///
    /// # Safety
    /// As for [`Bytes::write`], for the span rounded up to 16 bytes.
    ///
    /// # Panics
    /// If `at` is not a multiple of 16.
    #[inline(always)]
    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        let len_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let target = self.target(at, len_bytes.next_multiple_of(16));
        at.expect_aligned(16);
        // SAFETY: the target is aligned (the region is, and so is the offset) and as long as the padded parts; only
        // the caller uses it.
        unsafe { arch::stream(target, parts) }
    }

    /// Shows `bytes` at `at` only to this process, in a region that is open for reading: the file or DAX device is
    /// not changed. A reader recovers from a crash this way.
    ///
    /// # Errors
    /// [`MediumError::ReadOnly`] if a medium has no such memory; the errors of [`Bytes::check`];
    /// [`MediumError::Os`].
    ///
    /// # Safety
    /// The region is open for reading, and no thread but the caller uses it.
    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        let _ = (at, bytes);
        Err(MediumError::ReadOnly)
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

    /// Loads words of the 256 bytes at `at` (8-byte aligned), by index, each atomically with `Acquire`, one after
    /// the other.
    #[inline(always)]
    fn load_some<const COUNT: usize>(&self, at: Offset, numbers: [u8; COUNT]) -> [u64; COUNT] {
        numbers.map(|i| self.load(at.plus(8 * u64::from(i & 31)), Ordering::Acquire))
    }

    /// Executes an acquire fence: everything loaded before is not newer than later loads. For a reader that
    /// concludes from words that something is absent.
    #[inline(always)]
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }

    /// Checks that `span` is in the region and that its bytes are in memory. Every access makes this check, or one
    /// of its own that does the same.
    ///
    /// # Errors
    /// [`MediumError::OutOfBounds`]; [`MediumError::Unreadable`] if a part of it was lost.
    #[inline(always)]
    fn check(&self, span: Span) -> Result<(), MediumError> {
        let region_bytes = self.len_bytes();
        if !span.lies_within(region_bytes) {
            let Span { start, len_bytes } = span;
            return Err(MediumError::OutOfBounds { offset: start.0, len_bytes, region_bytes });
        }
        Ok(())
    }

    /// Returns the bytes of `span`.
    ///
    /// # Errors
    /// As for [`Bytes::check`].
    ///
    /// # Safety
    /// No thread stores to the span while the slice lives: it is private to the caller, or published and pinned.
    #[inline(always)]
    unsafe fn bytes(&self, span: Span) -> Result<&[u8], MediumError> {
        self.check(span)?;
        // SAFETY: the span is in the region (just checked), which stays in place while `self` is borrowed; the
        // caller promises that no thread stores to it during that time.
        Ok(unsafe {
            core::slice::from_raw_parts(self.base().as_ptr().add(span.start.0 as usize), span.len_bytes as usize)
        })
    }

    /// Returns the mask of the four words at `at` (32-byte aligned) that equal `word`: bit i for word i. Each is
    /// loaded atomically.
    #[inline(always)]
    fn match4(&self, at: Offset, word: u64) -> u32 {
        self.assert_within(at, 32);
        at.expect_aligned(32);
        // SAFETY: the 32 bytes are in the region (just checked) and aligned.
        unsafe { arch::match4(self.base().as_ptr().add(at.0 as usize).cast(), word) }
    }

    /// Like [`Bytes::match4`], and also returns the word 32 bytes behind the first match, loaded with `Acquire`; 0
    /// without a match.
    #[inline(always)]
    fn match4_behind(&self, at: Offset, word: u64) -> (u32, u64) {
        match self.match4(at, word) {
            0 => (0, 0),
            hits => (hits, self.load(at.plus(32 + 8 * u64::from(hits.trailing_zeros())), Ordering::Acquire)),
        }
    }

    /// Returns the atomic word at `at`. Only for implementations of media: the medium does not see a store through
    /// it.
    #[doc(hidden)]
    #[inline(always)]
    fn word(&self, at: Offset) -> &AtomicU64 {
        self.assert_within(at, 8);
        at.expect_aligned(8);
        // SAFETY: the word is in the region (just checked), is aligned, and stays in place while `self` is
        // borrowed; words that several threads access are only ever accessed atomically.
        unsafe { AtomicU64::from_ptr(self.base().as_ptr().add(at.0 as usize).cast()) }
    }

    /// Returns the address of `at`, where `len_bytes` may be stored. Only for implementations of media: the medium does
    /// not see a store there.
    ///
    /// # Panics
    /// If the bytes are outside the region, or nothing may be stored.
    #[doc(hidden)]
    #[inline(always)]
    fn target(&self, at: Offset, len_bytes: u64) -> *mut u8 {
        self.assert_within(at, len_bytes);
        assert!(self.is_writable(), "a store to a region that is open for reading");
        // SAFETY: the bytes are in the region (just checked).
        unsafe { self.base().as_ptr().add(at.0 as usize) }
    }

    /// Returns the atomic word at `at`, which may be stored to. Only for implementations of media.
    #[doc(hidden)]
    #[inline(always)]
    fn target_word(&self, at: Offset) -> &AtomicU64 {
        let word = self.target(at, 8).cast::<u64>();
        at.expect_aligned(8);
        // SAFETY: the word is aligned (the region is, and so is the offset) and in the region, which stays in place
        // while `self` is borrowed; words that several threads access are only ever accessed atomically.
        unsafe { AtomicU64::from_ptr(word) }
    }

    /// Panics unless `len_bytes` bytes at `at` are in the region. Lost bytes read as zeros: see
    /// [`Residency::check_lost_ranges`].
    #[doc(hidden)]
    #[inline(always)]
    fn assert_within(&self, at: Offset, len_bytes: u64) {
        if let Err(MediumError::OutOfBounds { .. }) = self.check(at.span(len_bytes)) {
            out_of_bounds(at, len_bytes, self.len_bytes());
        }
    }
}

#[cold]
#[inline(never)]
fn out_of_bounds(at: Offset, len_bytes: u64, region_bytes: u64) -> ! {
    panic!("{len_bytes} bytes at offset {:#x} lie outside the region of {region_bytes} bytes", at.0)
}
