//! Operations that do not wait for the disk, and the receipts that say up to where their caller has to wait later.
//!
//! A thread may defer its waits for a while ([`Acknowledger::deferred`]). The thread's writes are published as ever then, and its
//! reads may meet words that are not durable yet: for both the position of the log is noted, where otherwise the thread would
//! wait. The latest of these positions is in the [`Receipt`]. Until the log has come as far as the receipt says, no client may be
//! told of anything that those operations returned.
//!
//! # Invariants
//! - A word that is published stays FRESH until the log is durable up to it, as far as the journal's own level asks. So a reader
//!   that meets the word, waiting or deferring, comes to know that it may be lost; once the word is durable, it costs readers
//!   nothing any more.
//! - Whatever was deferred lies before [`Journal::deferred`]: for a reader that meets its effect where there is no mark.
//! - A receipt that is durable stays so. Positions are those of one journal, open once.
//!
//! A write at another level than the journal's is one that is deferred, and whose receipt is waited for at that level.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{Durability, MediumError, Waited};

use crate::File;
use crate::journal::Journal;

/// What has to become of the log before any client may be told the results of some operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Receipt {
    /// Up to where entries must be in the operating system's hands.
    written: u64,
    /// Up to where entries must be on the disk.
    synced: u64,
}

impl Receipt {
    fn at(level: Durability, position: u64) -> Receipt {
        match level {
            Durability::Power => Receipt { written: 0, synced: position },
            Durability::Buffered | Durability::Process => Receipt { written: position, synced: 0 },
        }
    }

    /// Its part that needs no sync.
    pub(crate) fn without_syncs(self) -> Receipt {
        Receipt { synced: 0, ..self }
    }

    /// Up to where the log has to be on the disk.
    pub(crate) fn synced_position(self) -> u64 {
        self.synced
    }

    /// For both.
    pub fn merge(self, other: Receipt) -> Receipt {
        Receipt { written: self.written.max(other.written), synced: self.synced.max(other.synced) }
    }
}

/// What a thread has left to be waited for.
#[derive(Clone, Copy)]
struct Deferral {
    /// Of which journal: its address. None has 0.
    journal: usize,
    /// At the deferral's own level.
    position: u64,
    /// At levels of their own.
    others: Receipt,
}

const NONE: Deferral = Deferral { journal: 0, position: 0, others: Receipt { written: 0, synced: 0 } };

thread_local! {
    static DEFERRAL: Cell<Deferral> = const { Cell::new(NONE) };
}

/// A deferral of this thread; over when it is dropped.
struct Scope {
    outer: Deferral,
}

impl Scope {
    fn begin<F>(journal: &Arc<Journal<F>>) -> Scope {
        Scope { outer: DEFERRAL.replace(Deferral { journal: Arc::as_ptr(journal).addr(), ..NONE }) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        DEFERRAL.set(self.outer);
    }
}

impl<F: File> Journal<F> {
    /// True if this thread waits itself; then `position` is among what it waits for.
    fn is_deferred(&self, position: u64) -> bool {
        let deferral = DEFERRAL.get();
        let is_mine = deferral.journal == std::ptr::from_ref(self).addr();
        if is_mine {
            DEFERRAL.set(Deferral { position: deferral.position.max(position), ..deferral });
        }
        is_mine
    }

    pub(crate) fn acknowledge(&self, position: u64) -> Result<Waited, MediumError> {
        if self.is_deferred(position) {
            return self.acknowledge_now(position);
        }
        self.wait(position, self.options.level).map(|()| Waited::Durable)
    }

    pub(crate) fn acknowledge_now(&self, position: u64) -> Result<Waited, MediumError> {
        if self.is_done(Receipt::at(self.options.level, position)) {
            return Ok(Waited::Durable);
        }
        self.healthy()?;
        self.append.deferred.fetch_max(position, Ordering::Release);
        Ok(Waited::Deferred)
    }

    fn is_done(&self, receipt: Receipt) -> bool {
        self.is_synced(receipt.synced) && self.is_written(receipt.written)
    }

    fn wait_for(&self, receipt: Receipt) -> Result<(), MediumError> {
        self.wait_written(receipt.written)?;
        self.wait(receipt.synced, Durability::Power)
    }
}

/// A journal as seen by callers that wait for it themselves. Clones share the journal.
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

    /// How the journal's end went, once it has come: after an error what was acknowledged with less than `power` may be lost,
    /// and nothing else.
    ///
    /// # Errors
    /// The medium's.
    pub fn closed(&self) -> Result<(), MediumError> {
        self.0.ending.closed.get().copied().unwrap_or(Ok(()))
    }

    /// Runs `operate`. Nothing that it does to this journal on this thread waits for the log; the receipt says what would have
    /// been waited for.
    pub fn deferred<R>(&self, operate: impl FnOnce() -> R) -> (R, Receipt) {
        self.collect(self.0.options.level, operate)
    }

    /// Runs `operate`, and then waits until what it did and saw is as durable as `level` says. Within [`Self::deferred`] that
    /// is part of the receipt.
    pub fn at<R>(&self, level: Durability, operate: impl FnOnce() -> R) -> (R, Result<(), MediumError>) {
        let (result, receipt) = self.collect(level, operate);
        let outer = DEFERRAL.get();
        if outer.journal == Arc::as_ptr(&self.0).addr() {
            DEFERRAL.set(Deferral { others: outer.others.merge(receipt), ..outer });
            return (result, Ok(()));
        }
        (result, self.wait(receipt))
    }

    fn collect<R>(&self, level: Durability, operate: impl FnOnce() -> R) -> (R, Receipt) {
        let _scope = Scope::begin(&self.0);
        let result = operate();
        let Deferral { mut position, others, .. } = DEFERRAL.get();
        if level > self.0.options.level {
            // What was met without a mark was acknowledged with less.
            position = position.max(self.0.taken_in());
        }
        if level == Durability::Buffered {
            self.0.ask_for_sync();
        }
        (result, Receipt::at(self.0.demanded(level), position).merge(others))
    }

    /// For a caller that has met writes of many others, without marks, and tells of them: what was deferred so far is durable once
    /// this has returned, or the caller of [`Self::deferred`] on this thread waits for it. On a medium that has failed everything
    /// must be durable, also what a caller waited for in vain.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`]: it must not be told.
    pub fn acknowledge_met(&self) -> Result<(), MediumError> {
        let journal = &self.0;
        let waited = match journal.healthy() {
            Ok(()) => journal.acknowledge(journal.append.deferred.load(Ordering::Acquire)),
            Err(_) => journal.acknowledge_now(journal.taken_in()),
        };
        waited.map(drop)
    }

    /// For everything that was deferred so far, by any thread.
    pub fn deferred_so_far(&self) -> Receipt {
        Receipt::at(self.0.options.level, self.0.append.deferred.load(Ordering::Acquire))
    }

    /// True if results of this receipt may be told, whatever became of the disk since.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`]: they must not be, now or later.
    pub fn is_durable(&self, receipt: Receipt) -> Result<bool, MediumError> {
        if self.0.is_done(receipt) { Ok(true) } else { self.0.healthy().map(|()| false) }
    }

    /// Waits until results of this receipt may be told.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    pub fn wait(&self, receipt: Receipt) -> Result<(), MediumError> {
        self.0.wait_for(receipt)
    }
}
