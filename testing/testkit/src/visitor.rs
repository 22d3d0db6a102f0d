//! Visitors: concurrent readers and writers that run between two steps of an operation.
//!
//! A reading or deleting visitor runs on the same thread, inside the medium's observer, and stands in for another
//! thread. A second writer ([`crate::rival`]) is a thread of its own. A reader that finds a value that is not yet
//! durable makes it durable, and so changes the steps that follow; therefore each visitor gets a separate run of the
//! script.

use pmem_sim::{Model, StepKind};

/// The kind of a visitor, and the steps after which it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Visitor {
    /// No visitor.
    Nobody,
    /// Reads all keys after every step.
    ReaderAlways,
    /// Reads all keys once per operation: after the step of this number, counted from 1.
    ReaderAfter(u64),
    /// Reads all keys after every step of this kind.
    ReaderAt(StepKind),
    /// Scans all keys after every step of this kind, which must be a kind at which no lock is held.
    ScannerAt(StepKind),
    /// A second writer, which writes its own key after every step, unless it still waits for a lock that the operation
    /// in flight holds. Its acknowledged writes must survive.
    WriterAlways,
    /// A second writer that writes once per operation: after the step of this number, counted from 1.
    WriterAfter(u64),
    /// A second writer that writes after every step of this kind.
    WriterAt(StepKind),
    /// Deletes the key that is being deleted, while the first deleter waits for a log and so holds no lock.
    Deleter,
}

impl Visitor {
    /// Returns all visitors: none, a reader and a writer after every step, a reader after each of the first
    /// `reader_steps_max` steps of an operation, a writer after the last of these, and a deleter.
    #[must_use]
    pub fn all(reader_steps_max: u64) -> Vec<Visitor> {
        let readers = (1..=reader_steps_max).map(Visitor::ReaderAfter);
        let writers = [Visitor::WriterAlways, Visitor::WriterAfter(reader_steps_max)];
        let others = [Visitor::Nobody, Visitor::ReaderAlways, Visitor::Deleter];
        others.into_iter().chain(writers).chain(readers).collect()
    }

    /// Returns true for a second writer.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Visitor::WriterAlways | Visitor::WriterAfter(_) | Visitor::WriterAt(_))
    }

    /// Returns false if a run on `model` could show nothing new. On memory a wait has no steps, and deleters of one key
    /// exclude each other.
    pub(crate) fn visits(self, model: Model) -> bool {
        self != Visitor::Deleter || model != Model::Line
    }

    /// Returns true if the visitor runs after the `op_step`th step of an operation, a step of `kind`.
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
