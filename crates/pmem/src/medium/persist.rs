//! Durability of stores, and its order.

use core::sync::atomic::Ordering;

use crate::{Bytes, Durability, Level, MediumError, Offset, Span, Taken, Ticket};

/// Makes stores durable. Order and commit are separate: [`Persist::order`] fixes the order, [`Persist::commit`]
/// requests durability. On memory both are a fence. On a log, order is free, and a commit is a sync that writers
/// share.
pub trait Persist: Bytes {
    /// Returns the failures that acknowledged writes survive on this medium.
    fn durability(&self) -> Durability;

    /// Returns the error that blocks writes, although the medium was opened for them.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    #[inline(always)]
    fn health(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// Returns true if everything that the region contained when it was opened is durable. On memory, a killed
    /// process may have left stores that are visible and not durable.
    fn opens_durable(&self) -> bool {
        false
    }

    /// Starts write-back of exactly the bytes that their owner stored. An empty span, which may be at the region's
    /// end, does nothing.
    fn flush(&self, span: Span);

    /// Orders: everything flushed before is durable before anything flushed after.
    fn order(&self);

    /// Makes words of one line visible and starts making them durable: one after the other, then the write-back of
    /// their line. Stores to one line become durable in this order, and the last is the commit point. All are
    /// stored with Release, so a reader may act on the first word only.
    ///
    /// `key` identifies the content of the words for [`Persist::commit_published`]. The engine chooses it: a value
    /// that stays the same when the words are copied to another place, or the last word's address.
    ///
    /// A medium that has failed stores nothing, now and later, and returns [`Taken::No`]. The consequences of the
    /// words must then not become visible either.
    ///
    /// # Panics
    /// If there is no word.
    #[inline(always)]
    fn publish(&self, words: &[(Offset, u64)], _key: u64) -> Taken {
        for &(at, word) in words {
            self.store(at, word, Ordering::Release);
        }
        self.flush(words[words.len() - 1].0.span(8));
        Taken::Yes
    }

    /// Returns the point at which the words published as `key`, the last one at `at`, are durable: for a thread
    /// that reads them before their publisher has waited. A log already contains those words, and returns the point
    /// of their publication or a later one, but none in the future.
    fn commit_published(&self, at: Offset, _key: u64) -> Ticket {
        self.flush(at.span(8));
        self.commit(Level::Strongest)
    }

    /// Requests that everything flushed so far become durable.
    fn commit(&self, level: Level) -> Ticket;

    /// Waits until everything that [`Persist::commit`] covered is durable.
    fn wait(&self, ticket: Ticket) -> Result<(), MediumError>;

    /// Makes flushed data as durable as the medium can, if commits promise less.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}
