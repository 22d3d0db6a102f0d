//! InK in the kernel: `pbtree` over a mapped range of persistent memory, behind functions that the module's C calls.
//!
//! # What crosses the border
//! Addresses of kernel memory that C has allocated and filled, and numbers. No address of a user's ever comes here: C copies a
//! request in before it calls, and the answer out after, so that nothing here can fault, and no lock is held while a user's
//! page is fetched. Answers are 0 or a negative `errno`.
//!
//! # Which task holds what
//! Every call runs in the context of a process, may sleep, and holds no lock of the kernel's. What is taken here is taken in
//! one order, lane -> tree -> nodes from the root down -> the heap's (`pbtree`), and is let go of before the call returns. A walk over a level has the
//! walks' latch before these, and a merge tries for it (`merging.rs`).
//! - *Lanes and node locks are no spinning locks of the kernel's*: preemption stays enabled under these locks, and a holder may sleep,
//!   as it does in asking for memory. So a waiter must not keep the processor: after 64 looks it asks the host (`pmem::relax_by`), which
//!   calls `cond_resched`, and from the eighth time on sleeps for 50 to 1000 microseconds. A waiter of a real-time priority so lets a
//!   lesser holder go on.
//! - *Memory that is asked for under a lock* may be reclaimed from others for it (`GFP_KERNEL`). Reclaim never comes back here: the module
//!   has no file system and no shrinker, and holds the device exclusively, so no file system lies on it.
//! - *Signals* do not end a wait: a holder waits for no user and no disk, so a wait is short. Scans and checks of a task that is killed end.
//! - *Values are freed under the leaf's lock*, and copied under it, so no reader has one that is free (`pbtree::FreeImmediately`).
//! - *Long walks* (check, sweep, scan) hold one node at a time, and let others run between two (`Medium::breathe`); so does a
//!   clear, under all lanes.
//! - *Interrupts* never come here.
//!
//! A panic ends in `BUG()`. The task is gone with the locks that it held, and a task that waits for one of these waits for ever. An
//! administrator sets `panic_on_oops=1` (`docs/kernel.md`), which makes of it a power cut, after which opening takes back what was half
//! done.
#![no_std]

mod errno;
mod exports;
mod fence;
mod host;
mod medium;
mod merging;
mod requests;
mod scan;
mod store;

/// A panic of the Rust code: the kernel's `BUG()`.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    host::die(info)
}
