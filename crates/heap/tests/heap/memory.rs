//! A medium in plain memory, and a host that counts its allocations.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use heap::layout::UNIT_BYTES;
use heap::{EngineNumber, Heap, Parameters};
use pmem::{
    Acknowledge, Bytes, Dram, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Ticket,
};

/// The address space of a medium; pages cost nothing until they are touched.
const RESERVED_BYTES: usize = 1 << 30;

/// The unit of eviction.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The eviction that a medium pretends.
#[derive(Default)]
pub(crate) struct Eviction {
    pub(crate) is_on: bool,
    /// Units that are not in memory.
    pub(crate) absent: BTreeSet<u64>,
    /// Pages whose content was given up.
    pub(crate) overwritten: BTreeSet<u64>,
}

/// A region in memory whose bytes can be read and which can be made read-only or full.
pub(crate) struct Memory {
    allocation: NonNull<u8>,
    len_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    growth_count: AtomicU64,
    populated_bytes: AtomicU64,
    is_writable: AtomicBool,
    eviction: Mutex<Eviction>,
    /// Units without space.
    holes: Mutex<BTreeSet<u64>>,
    /// Called once, when space has been allocated.
    after_back: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

// SAFETY: the memory belongs to the value and is accessed as atomic words.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// The alignment of a medium's base. Allocators zero lazily only at small alignments, so the code aligns by hand.
const ALIGNMENT: usize = 4_096;

fn layout() -> Layout {
    Layout::from_size_align(RESERVED_BYTES + ALIGNMENT, 16).unwrap()
}

impl Memory {
    pub(crate) fn new(len_bytes: u64) -> Memory {
        // SAFETY: the layout is not of size 0.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout()) }).expect("address space");
        let limit_bytes = AtomicU64::new(RESERVED_BYTES as u64);
        let (len_bytes, populated_bytes) = (AtomicU64::new(len_bytes), AtomicU64::new(0));
        let growth_count = AtomicU64::new(0);
        Memory {
            allocation,
            len_bytes,
            limit_bytes,
            growth_count,
            populated_bytes,
            is_writable: AtomicBool::new(true),
            eviction: Mutex::default(),
            holes: Mutex::default(),
            after_back: Mutex::default(),
        }
    }

    /// Creates a region that has only been formatted.
    pub(crate) fn formatted() -> (Memory, Heap<Host>) {
        let memory = Memory::new(0);
        let heap = Heap::format(&memory, EngineNumber::HIKV, &PARAMETERS, Host::default()).unwrap();
        heap.region().finish_format(&memory).unwrap();
        (memory, heap)
    }

    /// Returns the pages as the medium may have evicted them.
    pub(crate) fn eviction(&self) -> MutexGuard<'_, Eviction> {
        self.eviction.lock().unwrap()
    }

    /// Returns the number of attempts to grow it.
    pub(crate) fn growth_count(&self) -> u64 {
        self.growth_count.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit_bytes(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }

    /// Runs `work`, as if on another thread, after the next allocation of space and before its caller continues.
    pub(crate) fn after_back(&self, work: impl FnOnce() + Send + 'static) {
        *self.after_back.lock().unwrap() = Some(Box::new(work));
    }

    /// Returns true if some unit that the span touches has no space.
    pub(crate) fn has_hole(&self, span: Span) -> bool {
        units(span).any(|unit| self.holes.lock().unwrap().contains(&unit))
    }

    /// Returns the number of prepared bytes; bytes prepared twice count twice.
    pub(crate) fn populated_bytes(&self) -> u64 {
        self.populated_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_writable(&self, is_writable: bool) {
        self.is_writable.store(is_writable, Ordering::Relaxed);
    }

    /// Truncates the medium.
    pub(crate) fn truncate(&self, len_bytes: u64) {
        self.len_bytes.store(len_bytes, Ordering::Relaxed);
    }

    pub(crate) fn word_at(&self, at: u64) -> u64 {
        self.load(Offset(at), Ordering::Relaxed)
    }

    pub(crate) fn set_word(&self, at: u64, word: u64) {
        self.word(Offset(at)).store(word, Ordering::Relaxed);
    }

    /// Flips a bit, counted from the medium's start.
    pub(crate) fn flip(&self, bit: u64) {
        self.word(Offset(bit / 64 * 8)).fetch_xor(1 << (bit % 64), Ordering::Relaxed);
    }

    /// Copies the bytes of a span.
    pub(crate) fn bytes(&self, at: u64, len_bytes: u64) -> Vec<u8> {
        (at..at + len_bytes).step_by(8).flat_map(|at| self.word_at(at).to_le_bytes()).collect()
    }

    pub(crate) fn set_bytes(&self, at: u64, bytes: &[u8]) {
        for (i, chunk) in bytes.chunks_exact(8).enumerate() {
            self.set_word(at + i as u64 * 8, u64::from_le_bytes(chunk.try_into().unwrap()));
        }
    }
}

/// Returns the units that the span touches.
fn units(span: Span) -> impl Iterator<Item = u64> {
    span.start.0 / UNIT_BYTES..(span.start.0 + span.len_bytes).div_ceil(UNIT_BYTES)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.allocation.as_ptr(), layout()) }
    }
}

// SAFETY: the base is reserved for `RESERVED_BYTES`, aligned, and does not move.
unsafe impl Bytes for Memory {
    fn base(&self) -> NonNull<u8> {
        // SAFETY: the allocation is longer than `RESERVED_BYTES` by one alignment.
        unsafe { self.allocation.add(self.allocation.align_offset(ALIGNMENT)) }
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::Relaxed)
    }
}

impl Persist for Memory {
    fn durability(&self) -> Durability {
        Durability::Process
    }

    fn flush(&self, _span: Span) {}

    fn order(&self) {}

    fn commit(&self, _level: Level) -> Ticket {
        Ticket(0)
    }

    fn wait(&self, _ticket: Ticket) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Acknowledge for Memory {}

impl Residency for Memory {
    fn evicts(&self) -> bool {
        self.eviction().is_on
    }

    fn is_resident(&self, span: Span) -> bool {
        units(span).all(|unit| !self.eviction().absent.contains(&unit))
    }

    /// Spoils all whole pages: the worst that an evicting medium does.
    unsafe fn overwrite(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        let pages = span.start.0.div_ceil(PAGE_BYTES)..(span.start.0 + span.len_bytes) / PAGE_BYTES;
        for page in pages {
            self.set_bytes(page * PAGE_BYTES, &[0xEE; PAGE_BYTES as usize]);
            self.eviction().overwritten.insert(page);
        }
    }

    fn populate(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        self.populated_bytes.fetch_add(span.len_bytes, Ordering::Relaxed);
    }
}

impl Space for Memory {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.growth_count.fetch_add(1, Ordering::Relaxed);
        if to_bytes > self.limit_bytes.load(Ordering::Relaxed) {
            return Err(MediumError::Full { wanted_bytes: to_bytes });
        }
        self.len_bytes.fetch_max(to_bytes, Ordering::AcqRel);
        Ok(())
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        let whole = span.start.0.div_ceil(UNIT_BYTES)..(span.start.0 + span.len_bytes) / UNIT_BYTES;
        // A file system is slow: other threads run.
        (0..20).for_each(|_| thread::yield_now());
        let mut holes = self.holes.lock().unwrap();
        whole.filter(|&unit| holes.insert(unit)).count() as u64 * UNIT_BYTES
    }

    fn allocate(&self, span: Span) -> Result<(), MediumError> {
        let mut holes = self.holes.lock().unwrap();
        units(span).for_each(|unit| _ = holes.remove(&unit));
        drop(holes);
        let work = self.after_back.lock().unwrap().take();
        work.into_iter().for_each(|work| work());
        Ok(())
    }
}

impl Medium for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }
}

/// Allocates from the process' heap, up to a limit; clones share the count.
#[derive(Clone)]
pub(crate) struct Host {
    left_bytes: Arc<AtomicI64>,
}

/// The default limit of a [`Host`].
const HOST_BYTES: i64 = 1 << 30;

impl Default for Host {
    fn default() -> Host {
        Host::with_bytes(HOST_BYTES)
    }
}

impl Host {
    pub(crate) fn with_bytes(bytes: i64) -> Host {
        Host { left_bytes: Arc::new(AtomicI64::new(bytes)) }
    }

    pub(crate) fn left_bytes(&self) -> i64 {
        self.left_bytes.load(Ordering::Relaxed)
    }
}

// SAFETY: the global allocator's promises.
unsafe impl Dram for Host {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let bytes = layout.size() as i64;
        let take = |left: i64| (left >= bytes).then_some(left - bytes);
        self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        // SAFETY: the heap requests no layout of size 0.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        self.left_bytes.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: *b"0123456789abcdef", hash_seed: 0x5EED, partition_count: 16, region_bytes: 4 << 20 };
