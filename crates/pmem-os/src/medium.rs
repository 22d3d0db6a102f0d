//! The mapped region as a medium: the instructions of [`pmem::arch`], after one comparison with its length.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pmem::{
    Acknowledge, Bytes, Durability, LINE_BYTES, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span,
    Taken, Ticket, arch, lines,
};

use crate::Mapped;

#[cold]
#[inline(never)]
fn refuse(at: Offset, len_bytes: u64, writable_bytes: u64, writable: bool) -> ! {
    assert!(writable, "a store of {len_bytes} bytes at offset {:#x} to a region opened for reading", at.0);
    panic!("{len_bytes} bytes at offset {:#x} lie outside the region of {writable_bytes} bytes", at.0)
}

#[cold]
#[inline(never)]
fn unpublishable(at: Offset, line: Offset) -> ! {
    panic!("offset {:#x} is no word of the line at {:#x}", at.0, line.0)
}

// SAFETY: the base is the start of a shared mapping of `len_bytes` bytes, aligned to 1 GiB; space is allocated
// before the length covers it, or, if the file has holes, by `allocate` before stores; the mapping stays in place
// until the medium is dropped, and the length never shrinks.
unsafe impl Bytes for Mapped {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.addresses.base()
    }

    #[inline(always)]
    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn is_writable(&self) -> bool {
        self.writable
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn target(&self, at: Offset, len_bytes: u64) -> *mut u8 {
        let writable_bytes = self.writable_bytes.load(Ordering::Acquire);
        if !at.span(len_bytes).lies_within(writable_bytes) {
            refuse(at, len_bytes, writable_bytes, self.writable);
        }
        // SAFETY: the bytes are in the region (just checked), all of which is one mapping.
        unsafe { self.addresses.base().as_ptr().add(at.0 as usize) }
    }

    #[inline(always)]
    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        let len_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let target = self.target(at, len_bytes.next_multiple_of(16));
        at.expect_aligned(16);
        // SAFETY: the target is aligned (the region is, and so is the offset) and as long as the padded parts; only
        // the caller uses it.
        unsafe {
            if self.past_cache {
                arch::stream(target, parts);
            } else {
                arch::write_through(target, parts);
            }
        }
    }

    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        self.check(at.span(bytes.len() as u64))?;
        // SAFETY: the caller's promise, and the bytes are in the region (just checked).
        unsafe { self.map_overlay(at, bytes) }
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn match4_behind(&self, at: Offset, word: u64) -> (u32, u64) {
        self.assert_within(at, 64);
        at.expect_aligned(32);
        // SAFETY: the words are in the region (just checked), are aligned, and are only ever accessed atomically.
        unsafe {
            let words = self.base().as_ptr().add(at.0 as usize).cast::<u64>();
            match arch::match4(words, word) {
                0 => (0, 0),
                hits => {
                    let behind = words.add(4 + (hits.trailing_zeros() & 3) as usize);
                    (hits, AtomicU64::from_ptr(behind).load(Ordering::Acquire))
                }
            }
        }
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn load_some<const COUNT: usize>(&self, at: Offset, numbers: [u8; COUNT]) -> [u64; COUNT] {
        self.assert_within(at, 256);
        at.expect_aligned(8);
        let (start, mut words) = (self.base().as_ptr().wrapping_add(at.0 as usize), [0; COUNT]);
        for (word, i) in words.iter_mut().zip(numbers) {
            // SAFETY: as for `load4`, and a number is one of the 32 words there.
            *word = unsafe { AtomicU64::from_ptr(start.add(8 * usize::from(i & 31)).cast()) }.load(Ordering::Acquire);
        }
        words
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn load4(&self, at: Offset) -> [u64; 4] {
        self.assert_within(at, 32);
        at.expect_aligned(32);
        // The base is loaded once: otherwise each load of a word would load it again.
        let start = self.base().as_ptr().wrapping_add(at.0 as usize);
        // SAFETY: the words are in the region (just checked), are aligned, and are only ever accessed atomically.
        std::array::from_fn(|i| unsafe { AtomicU64::from_ptr(start.add(8 * i).cast()).load(Ordering::Acquire) })
    }
}

impl Persist for Mapped {
    fn durability(&self) -> Durability {
        self.durability
    }

    #[inline(always)]
    fn flush(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        let (line, past) = (span.start.line().0, span.start.0 + span.len_bytes);
        if span.len_bytes > 0 && past - line <= LINE_BYTES {
            // SAFETY: as below.
            return unsafe { arch::write_back(self.base().as_ptr().add(line as usize)) };
        }
        for line in lines(span) {
            // SAFETY: the line holds a byte of the region, whose length is a multiple of lines.
            unsafe { arch::write_back(self.base().as_ptr().add(line.0 as usize)) }
        }
    }

    #[inline(always)]
    fn order(&self) {
        arch::fence();
    }

    /// Makes one comparison with the length.
    #[inline(always)]
    fn publish(&self, words: &[(Offset, u64)], _key: u64) -> Taken {
        let line = words[words.len() - 1].0.line();
        let target = self.target(line, LINE_BYTES);
        for &(at, word) in words {
            let within = at.0.wrapping_sub(line.0);
            if within > LINE_BYTES - 8 || within & 7 != 0 {
                unpublishable(at, line);
            }
            // SAFETY: an aligned word of the line, which may be stored to; words that several threads access are
            // only ever accessed atomically.
            unsafe { AtomicU64::from_ptr(target.add(within as usize).cast()) }.store(word, Ordering::Release);
        }
        // SAFETY: a byte of the region.
        unsafe { arch::write_back(target) }
        Taken::Yes
    }

    /// Commits by a fence, which is all that memory needs: durable when it returns.
    #[inline(always)]
    fn commit(&self, _level: Level) -> Ticket {
        arch::fence();
        Ticket(0)
    }

    #[inline(always)]
    fn wait(&self, _ticket: Ticket) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Acknowledge for Mapped {}

impl Residency for Mapped {
    #[inline(always)]
    fn prefetch_for_stream(&self, span: Span) {
        if !self.past_cache {
            lines(span).for_each(|line| self.prefetch_line(line));
        }
    }

    fn populate(&self, span: Span) {
        self.populate_pages(span);
    }

    fn collapse_pages(&self) -> Option<Duration> {
        self.collapse_next()
    }
}

impl Space for Mapped {
    fn prepare_growth(&self, to_bytes: u64) {
        self.prepare_growth_to(to_bytes);
    }

    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.grow_to(to_bytes)
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        self.punch(span)
    }

    fn allocate(&self, span: Span) -> Result<(), MediumError> {
        self.fill(span)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.backing.allocated_bytes()
    }
}

impl Medium for Mapped {
    fn name(&self) -> &'static str {
        self.kind.name()
    }
}
