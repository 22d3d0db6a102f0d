//! The marks FRESH and DELETED, and the duties of a thread that finds a mark that another thread set.
//!
//! | thread | finds FRESH | then |
//! |---|---|---|
//! | a reader | waits until the word is durable, or defers the wait | clears the mark, unless it deferred |
//! | a writer with the pair's lock | does not wait: its word is later in the log | clears the mark of a durable word |
//! | a split | waits if the word is a removal, which leaves no copy | copies the mark, unless the word is durable |
//!
//! `Acknowledge::acknowledge` decides whether a reader may defer. If the log's writer has not waited for a removal,
//! the entry keeps the removal's word even after the item's slot was freed, and the same word may appear there
//! again. So such a word is only compared under the pair's lock.

use pmem::{Medium, MediumError, Waited};

use super::slot::Slot;
use crate::Position;
use crate::canary;

/// Makes a FRESH word durable before a thread acts on it, and clears the mark. If the caller waits for durability
/// itself (`Acknowledge::acknowledge`), the mark stays.
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

/// Returns true if a FRESH word may still be there when the slot of its item is already reused, so that it may
/// reappear while a thread compares. This happens with a removal for which the writer has not waited. Such a word
/// is settled only under its pair's lock ([`settle_locked`]).
fn outlives_its_item<M: Medium>(medium: &M, position: Position) -> bool {
    position.is_deleted() && medium.deferred().is_some()
}

/// Returns true if `position`, the word at `slot`, is no entry and will not become one, whatever happens. The
/// caller holds the lock.
#[inline(always)]
pub(super) fn is_free<M: Medium>(medium: &M, slot: Slot, position: Position) -> bool {
    position.is_empty() || position.is_deleted() && is_gone(medium, slot, position)
}

/// Finds out whether a removal is durable, because the log's writer may have left this to other threads.
#[cold]
fn is_gone<M: Medium>(medium: &M, slot: Slot, removed: Position) -> bool {
    let is_durable = || medium.acknowledge_now(slot.commit_published(medium, removed)) == Ok(Waited::Durable);
    !removed.is_in_batch() && (!removed.is_fresh() || medium.deferred().is_some() && is_durable())
}

/// Clears the mark of a FRESH word if that is durable, and returns whether it is. It waits for no disk, because the
/// caller holds the pair's lock and reports the word to no one.
pub(super) fn settle_locked<M: Medium>(medium: &M, slot: Slot, seen: Position) -> Result<Waited, MediumError> {
    let waited = medium.acknowledge_now(slot.commit_published(medium, seen))?;
    if waited == Waited::Durable {
        // This fails only if a reader settled the word first.
        let _ = medium.compare_exchange(slot.position, seen.word(), seen.settled().word());
    }
    Ok(waited)
}
