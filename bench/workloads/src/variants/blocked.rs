//! Scans as the paper prints them (section 4.3): 'HiKV must lock all updating queues temporally before serving Scan,
//! which would block the Put of other threads'.

use std::ops::ControlFlow;

use parking_lot::RwLock;

use super::varied::{Way, Write};
use crate::candidate::Candidate;
use crate::subject::{Error, Subject};

/// Writers share a lock. A scan locks it exclusively, applies the queued changes, and releases it before reading the
/// tree. A writer waits before its write, not between the write and the queue.
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

#[cfg(test)]
mod tests {
    use std::thread;

    use hikv::{Durability, Options};

    use super::*;

    /// A scan that arrives during a write waits for that write, and no later write begins before the scan has the
    /// queues.
    #[test]
    fn scan_awaiting_write_blocks_next() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().durability(Durability::Buffered).background(false);
        let store = Candidate::new(options.open(dir.path()).unwrap());
        store.put_in_order().unwrap();
        let way = BlockedQueues::default();
        thread::scope(|scope| {
            let scanning = || {
                let mut keys = Vec::new();
                way.scan(&store, b"", |key, _| {
                    keys.push(key.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
                keys
            };
            let write = || {
                let scan = scope.spawn(scanning);
                // Ends with a failure if the scan does not block.
                while way.queues.try_read().is_some() {
                    assert!(!scan.is_finished(), "the queues were open");
                    thread::yield_now();
                }
                store.put(b"key", b"value")?;
                Ok(scan)
            };
            let scan = way.around_write(&store, b"key", Write::Put(b"value"), write).unwrap();
            assert_eq!(scan.join().unwrap(), [b"key"], "a scan sees the writes before it");
        });
        assert!(way.queues.try_write().is_some(), "the lock is released");
    }
}
