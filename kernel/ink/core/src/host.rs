//! Services of the kernel: memory, waiting, the time, the log, and termination (`host.c`).

use core::alloc::Layout;
use core::fmt::{self, Write};
use core::ptr::NonNull;

use pmem::Dram;

unsafe extern "C" {
    fn ink_host_lend(bytes: usize, align: usize) -> *mut u8;
    fn ink_host_give_back(memory: *mut u8);
    safe fn ink_host_relax(attempt: u32);
    safe fn ink_host_yield();
    safe fn ink_host_is_killed() -> bool;
    safe fn ink_host_is_ending() -> bool;
    safe fn ink_host_merge_soon();
    safe fn ink_host_now_ms() -> u64;
    fn ink_host_log(text: *const u8, bytes: usize);
    fn ink_host_die(text: *const u8, bytes: usize) -> !;
}

/// The kernel's memory allocator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel;

// SAFETY: `ink_host_lend` returns zeroed memory of at least this length and alignment, which is not used elsewhere
// until it is freed; or null.
unsafe impl Dram for Kernel {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the function accepts any length and alignment.
        NonNull::new(unsafe { ink_host_lend(layout.size(), layout.align()) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller promises that this allocator returned it and that it is no longer used.
        unsafe { ink_host_give_back(memory.as_ptr()) }
    }
}

/// Lets other tasks run while a thread waits: `pmem::relax_by`.
pub(crate) fn relax(attempt: u32) {
    ink_host_relax(attempt);
}

/// Lets other tasks run in the middle of a long walk. Tasks that need a lock held then wait by `relax`.
pub(crate) fn yield_to_scheduler() {
    ink_host_yield();
}

/// Returns true if the calling task was killed and waits for its call to end.
pub(crate) fn is_killed() -> bool {
    ink_host_is_killed()
}

/// Returns true if the module is being unloaded, which waits for the work items.
pub(crate) fn is_ending() -> bool {
    ink_host_is_ending()
}

/// Requests the merging work item: `Store::merge` is called soon, unless that is already pending.
pub(crate) fn merge_soon() {
    ink_host_merge_soon();
}

/// Returns the milliseconds since 1970, the unit of expiries.
pub(crate) fn now_ms() -> u64 {
    ink_host_now_ms()
}

/// A line of the kernel's log.
struct Line {
    bytes: [u8; 200],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        Ok(())
    }
}

fn line(what: &dyn fmt::Display) -> Line {
    let mut line = Line { bytes: [0; 200], len: 0 };
    // A text that is too long is truncated.
    _ = write!(line, "{what}");
    line
}

/// Writes a line to the kernel's log.
pub(crate) fn say(what: &dyn fmt::Display) {
    let line = line(what);
    // SAFETY: the line's bytes, for its length.
    unsafe { ink_host_log(line.bytes.as_ptr(), line.len) }
}

/// Ends this task.
pub(crate) fn die(what: &dyn fmt::Display) -> ! {
    let line = line(what);
    // SAFETY: the line's bytes, for its length.
    unsafe { ink_host_die(line.bytes.as_ptr(), line.len) }
}
