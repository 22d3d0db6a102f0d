//! InK in the kernel: `pbtree` over a mapped range of persistent memory, behind functions that the module's C code
//! calls.
//!
//! # The interface to C
//! Arguments are numbers, and addresses of kernel memory that C has allocated and filled. They are never user
//! addresses: C copies a request in before the call, and the answer out after it. So nothing here can fault, and no
//! lock is held while a user's page is fetched. Results are 0 or a negative `errno`.
//!
//! # Locks and waiting
//! Every call runs in the context of a process, may sleep, and holds no kernel lock. Locks are taken in one order,
//! lane -> tree -> nodes from the root down -> the heap's (`pbtree`), and are released before the call returns. A
//! walk over a level takes the walks' latch before these, and a merge tries for it (`merging.rs`).
//! - *Lanes and node locks are not kernel spinlocks*: preemption stays enabled under these locks, and a holder may
//!   sleep, for example while it allocates memory. So a waiter must not occupy the processor: after 64 attempts it
//!   calls the host (`pmem::relax_by`), which calls `cond_resched`, and from the eighth call on sleeps for 50 to 1000
//!   microseconds. So a waiter with real-time priority lets a holder of lower priority continue.
//! - *Memory allocated under a lock* may be reclaimed from other users (`GFP_KERNEL`). Reclaim never calls back here:
//!   the module has no file system and no shrinker, and holds the DAX device exclusively, so no file system is on it.
//! - *Signals* do not end a wait: a holder waits for no user and no disk, so a wait is short. Scans and checks of a
//!   task that was killed end early.
//! - *Values are freed under the leaf's lock* and copied under it, so no reader uses a freed value
//!   (`pbtree::AtOnce`).
//! - *Long walks* (check, sweep, scan) hold one node at a time and let other tasks run between two nodes
//!   (`Medium::yield_to_scheduler`); so does a clear, under all lanes.
//! - *Interrupts* never call this code.
//!
//! A panic ends in `BUG()`. The task ends without releasing its locks, and a task that waits for one of these waits
//! forever. An administrator should set `panic_on_oops=1` (`docs/kernel.md`), which turns the panic into a power cut:
//! the next opening then undoes unfinished changes.
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

/// Handles a panic of the Rust code by the kernel's `BUG()`.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    host::die(info)
}
