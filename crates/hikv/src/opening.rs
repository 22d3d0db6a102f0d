//! How far an opening has come.

/// What an opening does, and how much of that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenProgress {
    /// A journal's log is read.
    Replaying {
        /// Segments that are done.
        done: u64,
        /// Segments to be replayed.
        total: u64,
    },
    /// Keys are put in order in volatile memory, by an engine that serves none before that (`pmekv`).
    Indexing {
        /// Keys that are done.
        done: u64,
        /// Keys that there are.
        total: u64,
    },
}

/// Is told how far an opening has come, by several threads.
pub(crate) type Progress<'a> = dyn Fn(OpenProgress) + Sync + 'a;
