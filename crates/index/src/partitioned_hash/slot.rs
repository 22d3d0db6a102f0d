//! The two words of an entry, and how they become visible and durable.

use pmem::{Medium, Offset, Taken, Ticket};

use crate::Position;

/// The place of an index entry: two words of one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The word of the key's signature.
    pub signature: Offset,
    /// The word of the position, in the same line. Storing it commits the entry.
    pub position: Offset,
}

impl Slot {
    /// Publishes the entry: first the signature, if it changes, then the position. The log identifies the entry by
    /// the offset of its item, so it also recognizes a split's copy, whatever the copy's marks are.
    #[inline(always)]
    pub(super) fn publish<M: Medium>(self, medium: &M, signature: Option<u64>, position: Position) -> Taken {
        let (last, key) = ((self.position, position.word()), position.offset().0);
        match signature {
            Some(signature) => medium.publish(&[(self.signature, signature), last], key),
            None => medium.publish(&[last], key),
        }
    }

    /// Returns the ticket for the durability of the position `seen`, read from this slot.
    #[inline(always)]
    pub(super) fn commit_published<M: Medium>(self, medium: &M, seen: Position) -> Ticket {
        medium.commit_published(self.position, seen.offset().0)
    }
}
