//! Writes that the medium refuses, and writes that find the region full: the sweep may find free space, and readers
//! that move on may free some.

use pmem::{Backoff, Medium, MediumError};

use crate::Error;

/// The number of times that a writer waits for readers that keep garbage: some tens of milliseconds in all, many times
/// the duration of a read. In a full region every refused write of an event loop waits as long.
const READER_WAITS_MAX: usize = 100;

/// Calls `attempt`; if it finds the region full, calls `make_space`, and `attempt` once more. The caller is not pinned:
/// otherwise garbage that waits for the caller would not be freed.
///
/// # Errors
/// Those of the last call.
#[inline(always)]
pub fn with_space<R>(
    mut attempt: impl FnMut() -> Result<R, Error>,
    make_space: impl Fn() -> Result<(), Error>,
) -> Result<R, Error> {
    let mut is_first = true;
    loop {
        match attempt() {
            Err(error) if is_first && error.is_full() => {
                make_space()?;
                is_first = false;
            }
            result => return result,
        }
    }
}

/// Returns the error that prevents writes to a medium, if there is one. A failed medium accepts no writes, and readers
/// must not see them either.
///
/// # Errors
/// The medium is read-only, or has failed.
#[inline(always)]
pub fn may_write<M: Medium>(medium: &M) -> Result<(), Error> {
    if medium.is_writable() { Ok(medium.health()?) } else { Err(MediumError::ReadOnly.into()) }
}

/// Waits for readers while `keeps` returns true, but only for a limited time. `keeps` frees the garbage that it can,
/// and returns true if readers still keep some.
pub fn wait_for_readers(mut keeps: impl FnMut() -> bool) {
    let mut backoff = Backoff::long();
    for _ in 0..READER_WAITS_MAX {
        if !keeps() {
            break;
        }
        backoff.relax();
    }
}
