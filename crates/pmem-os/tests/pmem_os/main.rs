//! Tests of mapped files, their growth and space, locks, and forked children. Limits of the process are in
//! `limits`.

mod common;
mod fork;
mod lock;
mod mapped;
mod probed;
mod space;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Until the result is dropped, no other test that locks or forks runs. Otherwise a process that a test starts
/// could, between fork and exec, have a file open that another test has locked.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
