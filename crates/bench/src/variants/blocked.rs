//! Scans as printed (section 4.3): 'HiKV must lock all updating queues temporally before serving Scan, which would block the Put of other
//! threads'.

use std::ops::ControlFlow;

use parking_lot::RwLock;

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Subject};

/// Writers share a lock; a scan takes it alone, applies what is queued, and lets go before it reads the tree. A writer waits before the
/// write, not between write and queue.
#[derive(Debug, Default)]
pub struct BlockedQueues {
    queues: RwLock<()>,
}

impl Way for BlockedQueues {
    fn name(&self) -> &'static str {
        "blocked-queues"
    }

    fn around_write<R>(
        &self,
        _store: &Candidate,
        _key: &[u8],
        _what: Write<'_>,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let _open = self.queues.read();
        write()
    }

    fn scan(
        &self,
        store: &Candidate,
        from: &[u8],
        each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let closed = self.queues.write();
        store.catch_up()?;
        drop(closed);
        store.scan(from, each)
    }
}
