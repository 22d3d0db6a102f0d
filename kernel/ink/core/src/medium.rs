//! The medium: a range of persistent memory that the kernel has mapped. It cannot grow.

use core::ptr::NonNull;

use pmem::{
    Acknowledge, Bytes, Durability, Level, Medium, MediumError, Persist, Residency, Space, Span, Ticket, arch, lines,
};

use crate::host;

/// A mapped range.
pub(crate) struct Region {
    base: NonNull<u8>,
    len_bytes: u64,
}

// SAFETY: the range is memory that any thread may access; words shared by several threads are atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// # Safety
    /// `base` is aligned to 4096 and stays mapped, readable and writable for `len_bytes`, a multiple of a line, while
    /// this value lives; and nothing else stores there.
    pub(crate) unsafe fn new(base: NonNull<u8>, len_bytes: u64) -> Region {
        Region { base, len_bytes }
    }
}

// SAFETY: `Region::new`'s caller promises the range; its length never changes; stores take effect there immediately.
unsafe impl Bytes for Region {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline(always)]
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

impl Persist for Region {
    fn durability(&self) -> Durability {
        Durability::Power
    }

    fn flush(&self, span: Span) {
        self.assert_within(span.start, span.len_bytes);
        for line in lines(span) {
            // SAFETY: the line contains a byte of the region, whose length is a multiple of lines.
            unsafe { write_back(self.base.as_ptr().add(line.0 as usize)) }
        }
    }

    #[inline(always)]
    fn order(&self) {
        arch::fence();
    }

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

impl Acknowledge for Region {}

impl Residency for Region {}

impl Space for Region {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        if to_bytes <= self.len_bytes { Ok(()) } else { Err(MediumError::Full { wanted_bytes: to_bytes }) }
    }
}

impl Medium for Region {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn yield_to_scheduler(&self) {
        host::yield_to_scheduler();
    }

    #[cfg(feature = "trace")]
    fn breaks(&self, canary: pmem::Canary) -> bool {
        crate::store::is_broken(canary.0)
    }
}

/// # Safety
/// `line` is a readable address.
#[cfg(not(feature = "trace"))]
#[inline(always)]
unsafe fn write_back(line: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { arch::write_back(line) }
}

/// Writes back as CLWB does, for an emulator that ignores that instruction: the model of the cache treats the load
/// behind this `nop` as the write-back (`kernel/ink/plugin`).
///
/// # Safety
/// `line` is a readable address.
#[cfg(feature = "trace")]
#[inline(always)]
unsafe fn write_back(line: *const u8) {
    if crate::store::is_broken("NothingFlushed") {
        return;
    }
    // SAFETY: a load of one byte, and a write-back, which changes nothing.
    unsafe {
        core::arch::asm!("nop dword ptr [rax + 0x7e571337]", "mov {byte}, byte ptr [{line}]",
            line = in(reg) line, byte = out(reg_byte) _, options(nostack, readonly, preserves_flags));
        arch::write_back(line);
    }
}
