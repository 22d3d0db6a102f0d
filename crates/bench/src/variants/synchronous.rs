//! HiKV-sync: hash index and tree are updated within one thread, the writer's.

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::Error;

/// Every write waits until the tree has it. The store has no background threads, so it is the writers that apply.
///
/// Of writers at the same time one applies what all have left, a group at a time, and the others wait for it: where there are many, each
/// pays a little less than a descent of its own.
#[derive(Debug, Default)]
pub struct Synchronous;

impl Way for Synchronous {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn around_write<R>(
        &self,
        store: &Candidate,
        _key: &[u8],
        _what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let written = write()?;
        store.catch_up()?;
        Ok(written)
    }
}
