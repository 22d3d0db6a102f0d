//! The signatures of keys.

use super::{Content, Slot};

/// The function that computes the signature of a key.
pub type Sign = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// Computes signatures.
pub(super) struct Signer(Box<Sign>);

impl Signer {
    pub(super) fn new(sign: Box<Sign>) -> Signer {
        Signer(sign)
    }

    /// Returns the signature of a key.
    #[inline(always)]
    pub(super) fn signature(&self, key: &[u8]) -> u64 {
        (self.0)(key)
    }

    /// Returns the signature of a slot's key, or `None` if the slot is damaged.
    pub(super) fn signature_of(&self, slot: &Slot) -> Option<u64> {
        match slot.content() {
            Content::Whole { key, .. } => Some(self.signature(key)),
            Content::Item { signature, .. } => Some(signature),
            Content::Damaged => None,
        }
    }

    /// Returns the signature of an intact slot's key.
    pub(super) fn signature_of_intact(&self, slot: &Slot) -> Option<u64> {
        self.signature_of(slot).filter(|_| slot.is_intact())
    }
}
