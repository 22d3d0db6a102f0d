//! What a write does that found the region full: the sweep may find free space, and so may readers that move on.

use pmem::Backoff;

use crate::Error;

/// How often a writer lets readers run that keep what it waits for: some tens of milliseconds, many times what a read takes.
const READER_WAITS_MAX: usize = 100;

/// Does `attempt`; where it finds the region full, `make_space`, and `attempt` once more. The caller is not pinned, or what waits for
/// it would not be freed.
///
/// # Errors
/// As of the last of them.
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

/// Lets readers run while they keep something, as `keeps` says after freeing what can be freed; but not for long.
pub fn wait_for_readers(mut keeps: impl FnMut() -> bool) {
    let mut backoff = Backoff::long();
    for _ in 0..READER_WAITS_MAX {
        if !keeps() {
            break;
        }
        backoff.relax();
    }
}
