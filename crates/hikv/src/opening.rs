//! Progress of opening a store.

/// A phase of opening a store, and its progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenProgress {
    /// Opening reads a journal's log.
    Replaying {
        /// Segments that were replayed.
        done: u64,
        /// Segments to replay.
        total: u64,
    },
    /// An engine that needs its index before it serves (`pmekv`) sorts the keys in volatile memory.
    Indexing {
        /// Keys that were sorted.
        done: u64,
        /// Keys in total.
        total: u64,
    },
}

/// A callback for progress, called by several threads.
pub(crate) type Progress<'a> = dyn Fn(OpenProgress) + Sync + 'a;
