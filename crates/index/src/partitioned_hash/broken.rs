//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use std::sync::atomic::Ordering;

use pmem::{Medium, Taken};

use super::batch::Change;
use super::slot::Slot;
use crate::Position;

/// Deletes an entry, whose word is `now`, by a plain zero that is not flushed. Returns the new word.
#[cold]
pub(super) fn store_plain_zero<M: Medium>(medium: &M, slot: Slot, now: Position) -> Position {
    let word = now.emptied();
    medium.store(slot.position, word.word(), Ordering::Release);
    word
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
