//! What the kernel lends: memory, waiting, the time, the log, and an end (`host.c`).

use core::alloc::Layout;
use core::fmt::{self, Write};
use core::ptr::NonNull;

use pmem::Dram;

unsafe extern "C" {
    fn ink_host_lend(bytes: usize, align: usize) -> *mut u8;
    fn ink_host_give_back(memory: *mut u8);
    safe fn ink_host_relax(attempt: u32);
    safe fn ink_host_breathe();
    safe fn ink_host_is_killed() -> bool;
    safe fn ink_host_is_ending() -> bool;
    safe fn ink_host_merge_soon();
    safe fn ink_host_now_ms() -> u64;
    fn ink_host_log(text: *const u8, bytes: usize);
    fn ink_host_die(text: *const u8, bytes: usize) -> !;
}

/// The kernel's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel;

// SAFETY: `ink_host_lend` gives zeroed memory of at least this length and alignment, nobody else's, until it is given back; or null.
unsafe impl Dram for Kernel {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the function takes any length and alignment.
        NonNull::new(unsafe { ink_host_lend(layout.size(), layout.align()) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller promises that it came from `allocate`, and that nobody uses it.
        unsafe { ink_host_give_back(memory.as_ptr()) }
    }
}

/// How a waiting thread lets others run: `pmem::relax_by`.
pub(crate) fn relax(attempt: u32) {
    ink_host_relax(attempt);
}

/// Lets others run, in the middle of a long walk. What is locked then, others wait for by `relax`.
pub(crate) fn breathe() {
    ink_host_breathe();
}

/// True if the calling task is to die, and waits for its call to end.
pub(crate) fn is_killed() -> bool {
    ink_host_is_killed()
}

/// True if the module is being unloaded, which waits for the work items.
pub(crate) fn is_ending() -> bool {
    ink_host_is_ending()
}

/// Asks for the work item that merges: `Store::merge` is called soon, if it is not about to be.
pub(crate) fn merge_soon() {
    ink_host_merge_soon();
}

/// Milliseconds since 1970, as expiries are.
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
    // What is too long is cut.
    _ = write!(line, "{what}");
    line
}

/// Says something in the kernel's log.
pub(crate) fn say(what: &dyn fmt::Display) {
    let line = line(what);
    // SAFETY: as many bytes of the line as it has.
    unsafe { ink_host_log(line.bytes.as_ptr(), line.len) }
}

/// The end of this task.
pub(crate) fn die(what: &dyn fmt::Display) -> ! {
    let line = line(what);
    // SAFETY: as many bytes of the line as it has.
    unsafe { ink_host_die(line.bytes.as_ptr(), line.len) }
}
