//! Tests that need a process without other tests, one after the other: they examine state that all stores of a process
//! share, pins and threads. A close that finds another test's reader writes no image, and garbage would wait for
//! another test's readers.

mod clean_close;
mod faults;
mod huge_pages;
mod idle;
mod many_stores;
mod memory;
mod opening;
mod sizes;
mod slow_callbacks;
mod snapshots;
mod versions;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks other tests until it is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
