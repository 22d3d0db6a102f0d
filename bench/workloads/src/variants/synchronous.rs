//! HiKV-sync: one thread, the writer's, updates both the hash index and the tree.

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::Error;

/// Every write waits until the tree contains it. The store has no background threads, so writers apply the changes.
///
/// One of several concurrent writers applies the changes of all of them, a group at a time, while the others wait: with
/// many writers, each pays a little less than for its own descent of the tree.
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
