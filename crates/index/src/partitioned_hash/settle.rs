//! The marks FRESH and DELETED, and the threads that meet a mark without having set it.
//!
//! | thread | meets FRESH | and |
//! |---|---|---|
//! | a reader | waits until the word is durable, or defers (`Acknowledge::acknowledge`) | takes the mark away, unless it deferred |
//! | a writer that holds the pair's lock | does not wait for a disk: what it publishes is behind the word in the log | takes the mark away, if the word is durable |
//! | a split | copies the mark, unless the word is durable; waits for a removal, which leaves no copy | |
//!
//! A removal whose log's writer has not waited keeps its word after the item's room was given back: the same word may come
//! back. So it is compared with under the pair's lock alone.

use pmem::{Medium, MediumError, Waited};

use super::batch::Batches;
use super::slot::Slot;
use crate::Position;
use crate::canary;

/// Which kind of thread searches, and so what is done about a mark that stands for something undecided.
#[derive(Clone, Copy)]
pub(super) struct Searcher<'a> {
    batches: &'a Batches,
    is_writer: bool,
}

impl<'a> Searcher<'a> {
    /// A thread that acts on what it finds.
    #[inline(always)]
    pub(super) fn reader(batches: &'a Batches) -> Searcher<'a> {
        Searcher { batches, is_writer: false }
    }

    /// A thread that holds the pair's lock, and so must not wait for a disk. What it publishes comes after what it finds, in the
    /// log as well. A thread that publishes nothing has to look again, as a reader, before it says so.
    #[inline(always)]
    pub(super) fn writer(batches: &'a Batches) -> Searcher<'a> {
        Searcher { batches, is_writer: true }
    }

    /// The word of the entry at `slot`, seen with such a mark, without one.
    pub(super) fn decided<M: Medium>(self, medium: &M, slot: Slot, seen: Position) -> Result<Position, MediumError> {
        if self.is_writer && !seen.is_in_batch() {
            // Noted, if it is not durable, for those who meet the item elsewhere: snapshots that see what is replaced.
            let _ = settle_locked(medium, slot, seen)?;
            return Ok(seen.settled());
        }
        self.batches.decided(medium, slot, seen)
    }
}

/// Makes a FRESH word durable before a thread acts on it, and takes the mark away. Where the caller is going to wait itself
/// (`Acknowledge::acknowledge`) the mark stays.
#[cold]
#[inline(never)]
pub(super) fn settle<M: Medium>(medium: &M, slot: Slot, seen: Position) -> Result<Position, MediumError> {
    let mut position = seen;
    while position.is_fresh() && medium.is_writable() && !medium.breaks(canary::UNSETTLED_READ) {
        let ticket = slot.commit_published(medium, position);
        if medium.acknowledge_met(ticket)? == Waited::Deferred || outlives_its_item(medium, position) {
            break;
        }
        position = match medium.compare_exchange(slot.position, position.word(), position.settled().word()) {
            Ok(_) => position.settled(),
            Err(now) => Position::from_word(now),
        };
    }
    Ok(position.settled())
}

/// True if a FRESH word may be there when its item's room is already used anew, so that it may come back while a thread compares:
/// of a removal whose writer has not waited. It is settled under its pair's lock alone ([`settle_locked`]).
fn outlives_its_item<M: Medium>(medium: &M, position: Position) -> bool {
    position.is_deleted() && medium.deferred().is_some()
}

/// True if `position`, the word at `slot`, is no entry and will be none, whatever happens. The caller holds the lock.
#[inline(always)]
pub(super) fn is_free<M: Medium>(medium: &M, slot: Slot, position: Position) -> bool {
    position.is_empty() || position.is_deleted() && is_gone(medium, slot, position)
}

/// A log's writer may have left it to others to find out that a removal is durable.
#[cold]
fn is_gone<M: Medium>(medium: &M, slot: Slot, removed: Position) -> bool {
    let is_durable = || medium.acknowledge_now(slot.commit_published(medium, removed)) == Ok(Waited::Durable);
    !removed.is_in_batch() && (!removed.is_fresh() || medium.deferred().is_some() && is_durable())
}

/// Takes the mark away from a FRESH word that is durable, and says whether it is. Nobody is told of it, and the caller holds
/// the lock of the pair, so a disk is not waited for.
pub(super) fn settle_locked<M: Medium>(medium: &M, slot: Slot, seen: Position) -> Result<Waited, MediumError> {
    let waited = medium.acknowledge_now(slot.commit_published(medium, seen))?;
    if waited == Waited::Durable {
        // It fails only where a reader settled the word first.
        let _ = medium.compare_exchange(slot.position, seen.word(), seen.settled().word());
    }
    Ok(waited)
}
