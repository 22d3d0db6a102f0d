//! What makes stores durable, and in which order.

use core::sync::atomic::Ordering;

use crate::{Bytes, Durability, Level, MediumError, Offset, Span, Taken, Ticket};

/// Order and commit are two things: [`Persist::order`] says what comes first, [`Persist::commit`] asks for durability. On
/// memory both are a fence; on a log the first is free and the second is a sync that writers share.
pub trait Persist: Bytes {
    /// What acknowledged writes survive here.
    fn durability(&self) -> Durability;

    /// What speaks against further writes, though the medium was opened for them.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    #[inline(always)]
    fn health(&self) -> Result<(), MediumError> {
        Ok(())
    }

    /// True where all that the region showed when it was opened is durable. On memory a process that was killed may have left stores
    /// that are visible and not durable.
    fn opens_durable(&self) -> bool {
        false
    }

    /// Starts write-back of exactly the bytes that their owner stored; of none for an empty span, which may lie at the region's end.
    fn flush(&self, span: Span);

    /// What was flushed before is durable before anything flushed after.
    fn order(&self);

    /// Makes words of one line visible and starts making them durable: one after the other, then the write-back of their
    /// line. Stores to one line become durable in this order, and the last is the commit point. All are stored with Release: a
    /// reader may conclude from the first alone.
    ///
    /// `key` stands for what the words say, for [`Persist::commit_published`]. The engine chooses it: what stays the same when
    /// the words are copied elsewhere, or the last word's address.
    ///
    /// A medium that has failed stores nothing, and says so, now and ever after: whatever follows from the words must then not become
    /// visible either.
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

    /// When the words published as `key`, the last one at `at`, are durable: for a thread that reads them before their publisher
    /// has waited. A log holds those words already, and returns the point of their publication or a later one, but none that lies
    /// in the future.
    fn commit_published(&self, at: Offset, _key: u64) -> Ticket {
        self.flush(at.span(8));
        self.commit(Level::Strongest)
    }

    /// Asks that everything flushed so far become durable.
    fn commit(&self, level: Level) -> Ticket;

    /// Returns once what [`Persist::commit`] asked for is durable.
    fn wait(&self, ticket: Ticket) -> Result<(), MediumError>;

    /// Makes what was flushed as durable as the medium can, where commits promise less.
    ///
    /// # Errors
    /// As for [`Persist::wait`].
    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}
