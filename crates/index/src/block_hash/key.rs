//! A key to find, and the comparison of a slot with it.

use super::slot::Heads;
use super::{Content, Slot};
use crate::Position;

/// A key to find.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The bytes of the key.
    pub bytes: &'a [u8],
    /// The signature of the key.
    pub signature: u64,
}

impl Key<'_> {
    /// Returns the beginnings of slots that may hold the key.
    #[inline(always)]
    pub(super) fn heads(&self) -> Heads {
        Heads::of(self.bytes, self.signature)
    }

    /// Returns true if `slot` holds the key. If the slot does not decide this, calls `is_key`, which reads the
    /// item.
    #[inline(always)]
    pub(super) fn is_in<E>(
        &self,
        slot: &Slot,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match slot.content() {
            Content::Whole { key, .. } => Ok(key == self.bytes),
            Content::Item { signature, position } if signature == self.signature => is_key(position),
            _ => Ok(false),
        }
    }

    #[inline(always)]
    pub(super) fn may_be_in(&self, slot: &Slot) -> bool {
        match slot.content() {
            Content::Whole { key, .. } => key == self.bytes,
            Content::Item { signature, .. } => signature == self.signature,
            Content::Damaged => false,
        }
    }
}
