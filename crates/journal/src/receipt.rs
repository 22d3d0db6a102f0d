//! Operations that do not wait for the disk, and receipts with the position for which their caller has to wait
//! later.
//!
//! A thread may defer its waits for a while ([`Acknowledger::deferred`]). Then the thread's writes are published as
//! usual, and reads may find words that are not durable yet. In both cases the thread notes the log's position
//! instead of waiting. The latest of these positions is in the [`Receipt`]. Until the log is durable up to there,
//! the caller must not report the results of the operations to any client.
//!
//! # Invariants
//! - A published word stays FRESH until the log is durable up to it, to the degree that the journal's level
//!   requires. So a reader that finds the word, waiting or deferring, learns that it may be lost. Once the word is
//!   durable, it costs readers nothing.
//! - Every deferred write is before [`Log::deferred`]: for a reader that finds its effect in a place without a
//!   mark.
//! - A receipt that is durable stays so. Positions are valid for one opening of one journal.
//!
//! A write at another level than the journal's is deferred, and its receipt is waited for at that level.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use pmem::{Durability, MediumError, Waited};

use crate::File;
use crate::journal::Journal;
use crate::log::Log;

/// The state that the log must reach before the results of some operations may be reported to any client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Receipt {
    /// The position up to which the operating system must have the entries.
    written: u64,
    /// The position up to which entries must be on the disk.
    synced: u64,
}

impl Receipt {
    fn at(level: Durability, position: u64) -> Receipt {
        match level {
            Durability::Power => Receipt { written: 0, synced: position },
            Durability::Buffered | Durability::Process => Receipt { written: position, synced: 0 },
        }
    }

    /// Returns the part that needs no sync.
    pub(crate) fn without_syncs(self) -> Receipt {
        Receipt { synced: 0, ..self }
    }

    /// Returns the position up to which the log must be on the disk.
    pub(crate) fn synced_position(self) -> u64 {
        self.synced
    }

    /// Returns the receipt as one number, for callers that keep no other type. The number may cover more: it has one
    /// position, which counts for the level that needs more.
    #[must_use]
    pub fn to_number(self) -> u64 {
        match self {
            Receipt { written, synced: 0 } => written << 1,
            Receipt { written, synced } => written.max(synced) << 1 | 1,
        }
    }

    /// Returns the receipt of a number.
    pub fn from_number(number: u64) -> Receipt {
        let level = if number & 1 == 0 { Durability::Process } else { Durability::Power };
        Receipt::at(level, number >> 1)
    }

    fn is_done<F: File>(self, log: &Log<F>) -> bool {
        log.is_synced(self.synced) && log.is_written(self.written)
    }

    /// Returns a receipt for both.
    pub fn merge(self, other: Receipt) -> Receipt {
        Receipt { written: self.written.max(other.written), synced: self.synced.max(other.synced) }
    }
}

/// The positions for which a thread has deferred its wait.
#[derive(Clone, Copy)]
struct Deferral {
    /// The log's address; 0 for none.
    log: usize,
    /// The position at the deferral's own level.
    position: u64,
    /// The receipts at other levels.
    others: Receipt,
}

const NONE: Deferral = Deferral { log: 0, position: 0, others: Receipt { written: 0, synced: 0 } };

thread_local! {
    static DEFERRAL: Cell<Deferral> = const { Cell::new(NONE) };
}

/// A deferral of this thread, which ends when the value is dropped.
struct Scope {
    outer: Deferral,
}

impl Scope {
    fn begin<F>(log: &Log<F>) -> Scope {
        Scope { outer: DEFERRAL.replace(Deferral { log: ptr::from_ref(log).addr(), ..NONE }) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        DEFERRAL.set(self.outer);
    }
}

/// Returns true if this thread has deferred its waits for the log; then notes `position`.
fn is_deferred<F>(log: &Log<F>, position: u64) -> bool {
    let deferral = DEFERRAL.get();
    let is_mine = deferral.log == ptr::from_ref(log).addr();
    if is_mine {
        DEFERRAL.set(Deferral { position: deferral.position.max(position), ..deferral });
    }
    is_mine
}

impl<F: File> Log<F> {
    /// Waits until the log is as durable up to `position` as its level requires, unless this thread defers its waits.
    pub(crate) fn acknowledge(&self, position: u64) -> Result<Waited, MediumError> {
        if is_deferred(self, position) {
            return self.acknowledge_now(position);
        }
        self.wait(position, self.level()).map(|()| Waited::Durable)
    }
}

/// A handle to a journal for callers that wait for it themselves. Clones share the journal.
#[derive(Debug)]
pub struct Acknowledger<F>(Arc<Journal<F>>);

impl<F> Clone for Acknowledger<F> {
    fn clone(&self) -> Self {
        Acknowledger(Arc::clone(&self.0))
    }
}

impl<F: File> Acknowledger<F> {
    pub(crate) fn of(journal: &Arc<Journal<F>>) -> Acknowledger<F> {
        Acknowledger(Arc::clone(journal))
    }

    pub(crate) fn journal(&self) -> &Journal<F> {
        &self.0
    }

    /// Returns the result of closing the journal, once it is closed. After an error, only writes that were
    /// acknowledged with less than `power` may be lost.
    ///
    /// # Errors
    /// The medium's.
    pub fn closed(&self) -> Result<(), MediumError> {
        self.0.health.closed()
    }

    /// Runs `operate`. Its operations on this journal on this thread do not wait for the log; the returned receipt
    /// has the positions instead.
    pub fn deferred<R>(&self, operate: impl FnOnce() -> R) -> (R, Receipt) {
        self.collect(self.0.log.level(), operate)
    }

    /// Runs `operate`, and then waits until its writes and the words that it read are as durable as `level`
    /// requires. Within [`Self::deferred`], the position is added to the outer receipt instead.
    pub fn at<R>(&self, level: Durability, operate: impl FnOnce() -> R) -> (R, Result<(), MediumError>) {
        let (result, receipt) = self.collect(level, operate);
        let outer = DEFERRAL.get();
        if outer.log == ptr::from_ref(&self.0.log).addr() {
            DEFERRAL.set(Deferral { others: outer.others.merge(receipt), ..outer });
            return (result, Ok(()));
        }
        (result, self.wait(receipt))
    }

    /// Runs `operate`, and then waits for everything that it wrote and read at the journal's own level, once. Within
    /// [`Self::deferred`] or [`Self::at`], only the outer call waits.
    pub fn together<R>(&self, operate: impl FnOnce() -> R) -> (R, Result<(), MediumError>) {
        if DEFERRAL.get().log == ptr::from_ref(&self.0.log).addr() {
            return (operate(), Ok(()));
        }
        let (result, receipt) = self.deferred(operate);
        (result, self.wait(receipt))
    }

    /// Waits, before a read pins itself, until the region's memory is within its limit, if it has one.
    #[inline]
    pub fn admit(&self) {
        self.0.admit();
    }

    fn collect<R>(&self, level: Durability, operate: impl FnOnce() -> R) -> (R, Receipt) {
        let log = &self.0.log;
        self.0.admit_write();
        let _scope = Scope::begin(log);
        let result = operate();
        let Deferral { mut position, others, .. } = DEFERRAL.get();
        if level > log.level() {
            // Words that were found without a mark may have been acknowledged at a lower level.
            position = position.max(log.taken_in());
        }
        if level == Durability::Buffered {
            log.requests().soon();
        }
        (result, Receipt::at(log.demanded(level), position).merge(others))
    }

    /// Waits for the writes of other threads that a caller has read without marks and is about to report. When this
    /// returns, all writes deferred so far are durable, or the caller of [`Self::deferred`] on this thread waits
    /// for them. On a medium that has failed, everything must be durable, including writes whose wait failed.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`]: the caller must not report the results.
    pub fn acknowledge_met(&self) -> Result<(), MediumError> {
        let Journal { log, health, .. } = &*self.0;
        let waited = match health.check() {
            Ok(()) => log.acknowledge(log.deferred()),
            Err(_) => log.acknowledge_now(log.taken_in()),
        };
        waited.map(drop)
    }

    /// Returns the receipt for everything deferred so far, by any thread.
    pub fn deferred_so_far(&self) -> Receipt {
        Receipt::at(self.0.log.level(), self.0.log.deferred())
    }

    /// Returns true if the results of this receipt may be reported, even if the disk failed since.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`]: they must not be reported, now or later.
    pub fn is_durable(&self, receipt: Receipt) -> Result<bool, MediumError> {
        if receipt.is_done(&self.0.log) { Ok(true) } else { self.0.health.check().map(|()| false) }
    }

    /// Waits until the results of this receipt may be reported.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    pub fn wait(&self, receipt: Receipt) -> Result<(), MediumError> {
        self.0.log.wait_written(receipt.written)?;
        self.0.log.wait(receipt.synced, Durability::Power)
    }
}
