//! Files mapped, their growth and space, locks, and forked children. Limits of the process are in `limits`.

mod common;
mod fork;
mod lock;
mod mapped;
mod probed;
mod space;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Between fork and exec a process that one test starts has open what another test has locked: until this is dropped no
/// other test that locks or forks runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
