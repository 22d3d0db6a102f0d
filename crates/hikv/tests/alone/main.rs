//! Tests that need a process for themselves, one after the other: they look at what belongs to all stores of a process, pins and
//! threads. A close that meets another test's reader leaves no image, and what one test retires would wait for the readers of
//! another.

mod clean_close;
mod faults;
mod huge_pages;
mod idle;
mod many_stores;
mod opening;
mod slow_callbacks;
mod snapshots;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Until it is dropped no other test runs.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
