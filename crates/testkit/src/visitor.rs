//! Visitors: what comes by between two steps of an operation.
//!
//! A visitor runs on the same thread, inside the medium's observer, and stands for another thread; a second writer is one
//! ([`crate::rival`]). What it sees settles marks, and so changes what follows: each visitor has a run of the script of its
//! own.

use pmem_sim::{Model, StepKind};

/// Which visitor comes by, and when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Visitor {
    /// Nobody.
    Nobody,
    /// A reader of all keys, after every step.
    ReaderAlways,
    /// A reader of all keys, once an operation: after the step of this number, counted from 1.
    ReaderAfter(u64),
    /// A reader of all keys, after every step of this kind.
    ReaderAt(StepKind),
    /// A reader that scans all keys, after every step of this kind, of those at which no lock is held.
    ScannerAt(StepKind),
    /// A second writer, which writes a key of its own after every step, unless it still waits for a lock that the operation
    /// in flight holds. What it was told counts.
    WriterAlways,
    /// The same, once an operation: after the step of this number, counted from 1.
    WriterAfter(u64),
    /// The same, after every step of this kind.
    WriterAt(StepKind),
    /// Another thread deletes the key that is being deleted, while the first waits for a log and so holds no lock.
    Deleter,
}

impl Visitor {
    /// Everybody: nobody, a reader and a writer after every step, a reader after each of the first `reader_steps_max` steps of
    /// an operation, a writer after one of them, and a deleter.
    #[must_use]
    pub fn all(reader_steps_max: u64) -> Vec<Visitor> {
        let readers = (1..=reader_steps_max).map(Visitor::ReaderAfter);
        let writers = [Visitor::WriterAlways, Visitor::WriterAfter(reader_steps_max)];
        let others = [Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter];
        others.into_iter().chain(writers).chain(readers).collect()
    }

    /// Whether it is a second writer.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Visitor::WriterAlways | Visitor::WriterAfter(_) | Visitor::WriterAt(_))
    }

    /// Whether a run on `model` can show anything. On memory a wait is empty, and deleters of one key exclude each other.
    pub(crate) fn visits(self, model: Model) -> bool {
        self != Visitor::Deleter || model != Model::Line
    }

    /// Whether it comes after the `op_step`th step of an operation, one of `kind`.
    pub(crate) fn comes(self, op_step: u64, kind: StepKind) -> bool {
        match self {
            Visitor::Nobody => false,
            Visitor::ReaderAlways | Visitor::WriterAlways => true,
            Visitor::ReaderAfter(step) | Visitor::WriterAfter(step) => step == op_step,
            Visitor::ReaderAt(awaited) | Visitor::ScannerAt(awaited) | Visitor::WriterAt(awaited) => kind == awaited,
            Visitor::Deleter => kind == StepKind::WaitBegin,
        }
    }
}
