//! A medium that is plain memory without bookkeeping, so that threads and Miri are fast.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use pmem::{
    Acknowledge, Bytes, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Ticket,
    Waited, arch,
};

/// Many times the size that a rig formats: other tests of the process may be pinned for long, and then nothing is
/// freed.
const LIMIT_BYTES: u64 = 64 << 20;
const LAYOUT: Layout = match Layout::from_size_align(LIMIT_BYTES as usize, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// A region that is lost with the process.
pub(super) struct Plain {
    base: NonNull<u8>,
    len_bytes: AtomicU64,
    /// True for a log whose writers do not wait: nothing is durable before a thread waits for a disk.
    is_log: bool,
    waited_count: AtomicU64,
}

impl Plain {
    pub(super) fn new() -> Plain {
        // SAFETY: the layout's size is not 0.
        let base = NonNull::new(unsafe { alloc_zeroed(LAYOUT) });
        let base = base.unwrap_or_else(|| handle_alloc_error(LAYOUT));
        Plain { base, len_bytes: AtomicU64::new(0), is_log: false, waited_count: AtomicU64::new(0) }
    }

    /// Creates a log whose disk never completes a write on its own.
    pub(super) fn log() -> Plain {
        let mut log = Plain::new();
        log.is_log = true;
        log
    }

    /// Returns the number of waits for a disk.
    pub(super) fn waited_count(&self) -> u64 {
        self.waited_count.load(Ordering::Relaxed)
    }

    fn deferred(&self) -> Result<Waited, MediumError> {
        Ok(if self.is_log { Waited::Deferred } else { Waited::Durable })
    }

    fn at(&self, offset: Offset, len_bytes: u64) -> *mut u8 {
        self.assert_within(offset, len_bytes);
        // SAFETY: the bytes are in the region (just checked).
        unsafe { self.base.as_ptr().add(offset.0 as usize) }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout; its owner is being dropped.
        unsafe { dealloc(self.base.as_ptr(), LAYOUT) }
    }
}

// SAFETY: the memory belongs to this value and is reached as the medium's contract requires.
unsafe impl Send for Plain {}
// SAFETY: as above.
unsafe impl Sync for Plain {}

// SAFETY: `base` stays at its place and is page-aligned, as long as the limit, and zero; the length only grows, up
// to the limit.
unsafe impl Bytes for Plain {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        self.word(at).store(word, ordering);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.word(at).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        let target = self.at(at, bytes.len() as u64);
        // SAFETY: the target is in the region, and only the caller uses it.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        let len_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let target = self.at(at, len_bytes.next_multiple_of(16) as u64);
        // SAFETY: as above, padding included.
        unsafe { arch::stream(target, parts) };
    }
}

impl Persist for Plain {
    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn flush(&self, _span: Span) {}

    fn order(&self) {
        arch::fence();
    }

    fn commit(&self, _level: Level) -> Ticket {
        arch::fence();
        Ticket(u64::from(self.is_log))
    }

    fn wait(&self, _ticket: Ticket) -> Result<(), MediumError> {
        self.waited_count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Acknowledge for Plain {
    fn deferred(&self) -> Option<Ticket> {
        self.is_log.then_some(Ticket(0))
    }

    fn acknowledge(&self, _ticket: Ticket) -> Result<Waited, MediumError> {
        self.deferred()
    }

    fn acknowledge_now(&self, _ticket: Ticket) -> Result<Waited, MediumError> {
        self.deferred()
    }
}

impl Residency for Plain {}

impl Space for Plain {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        if to_bytes > LIMIT_BYTES {
            return Err(MediumError::Limit { wanted_bytes: to_bytes, limit_bytes: LIMIT_BYTES });
        }
        self.len_bytes.fetch_max(to_bytes, Ordering::AcqRel);
        Ok(())
    }
}

impl Medium for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
}
