//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use std::sync::atomic::Ordering;

use pmem::{Medium, Taken, Ticket};

use super::batch::Change;
use super::ops::Published;
use super::slot::Slot;
use crate::Position;

/// Deletes an entry, whose word is `now`, by a plain zero that is not flushed.
#[cold]
pub(super) fn remove_by_plain_zero<M: Medium>(medium: &M, slot: Slot, now: Position) -> Published {
    let word = now.emptied();
    medium.store(slot.position, word.word(), Ordering::Release);
    Published { slot, word, ticket: Some(Ticket(0)), crowded: None }
}

/// Ends a batch's turn before the batch's word is cleared, instead of after it.
#[cold]
pub(super) fn end_turn_first<T>(end_turn: impl FnOnce() -> T, finish: impl FnOnce()) -> T {
    let ended = end_turn();
    finish();
    ended
}

/// Publishes an entry's position before its signature.
#[cold]
pub(super) fn publish_position_first<M: Medium>(medium: &M, slot: Slot, signature: u64, word: Position) -> Taken {
    let taken = slot.publish(medium, None, word);
    medium.store(slot.signature, signature, Ordering::Relaxed);
    medium.flush(slot.signature.span(8));
    taken
}

/// Carries out a committed batch's changes again, whatever the entries hold by now.
#[cold]
pub(super) fn replay<M: Medium>(medium: &M, changes: &[Change]) {
    for change in changes {
        let now = Position::from_word(medium.load(change.at, Ordering::Acquire));
        medium.store(change.at, change.new.in_place_of(now).word(), Ordering::Release);
    }
}
