//! An entry's two words, and how they become visible and durable.

use pmem::{Medium, Offset, Taken, Ticket};

use crate::Position;

/// Where an index entry lies: two words of one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The word of the key's signature.
    pub signature: Offset,
    /// The word of the position, in the same line: the commit point.
    pub position: Offset,
}

impl Slot {
    /// Publishes the entry: the signature, if it changes, then the position. The entry is known by where the item lies, so
    /// that a split's copy is known, too, whatever its marks.
    #[inline(always)]
    pub(super) fn publish<M: Medium>(self, medium: &M, signature: Option<u64>, position: Position) -> Taken {
        let (last, key) = ((self.position, position.word()), position.offset().0);
        match signature {
            Some(signature) => medium.publish(&[(self.signature, signature), last], key),
            None => medium.publish(&[last], key),
        }
    }

    /// When the position `seen` here is durable.
    #[inline(always)]
    pub(super) fn commit_published<M: Medium>(self, medium: &M, seen: Position) -> Ticket {
        medium.commit_published(self.position, seen.offset().0)
    }
}
