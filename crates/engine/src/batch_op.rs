//! The operations and conditions of a batch.

use crate::{Expiry, Version, Witness};

/// A condition that a key must meet for a batch to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The required version of its value; `None` if the key must be absent.
    pub version: Option<Version>,
}

impl Condition<'_> {
    /// Returns true if the key's live value, `None` if it has none, meets the condition.
    #[must_use]
    pub fn holds(&self, live: Option<(Witness, &[u8])>) -> bool {
        match (self.version, live) {
            (Some(version), Some((witness, value))) => witness.is_of(version, self.key, value),
            (version, live) => version.is_none() && live.is_none(),
        }
    }
}

/// One operation of a batch. Every variant keeps key and value at the same offset, because a batch reads them many
/// times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum BatchOp<'a> {
    /// Puts or replaces.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Puts or replaces, with an expiry.
    PutUntil {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// The key's expiry.
        expiry: Expiry,
    },
    /// Deletes the key if it is present.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> BatchOp<'a> {
    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match *self {
            BatchOp::Put { key, .. } | BatchOp::PutUntil { key, .. } | BatchOp::Delete { key } => key,
        }
    }

    /// Returns the key if the batch only deletes this one key and has no condition on another key. Such a batch is one
    /// step as a plain delete, without a batch record.
    #[must_use]
    pub fn single_delete(conditions: &[Condition<'_>], ops: &[BatchOp<'a>]) -> Option<&'a [u8]> {
        let key = ops.first()?.key();
        let deletes_it = |op: &BatchOp<'_>| op.value().is_none() && op.key() == key;
        (ops.iter().all(deletes_it) && conditions.iter().all(|condition| condition.key == key)).then_some(key)
    }

    /// Returns the value, `None` for a delete.
    #[must_use]
    pub const fn value(&self) -> Option<&'a [u8]> {
        match *self {
            BatchOp::Put { value, .. } | BatchOp::PutUntil { value, .. } => Some(value),
            BatchOp::Delete { .. } => None,
        }
    }

    /// Returns the expiry of the put value.
    #[must_use]
    pub const fn expiry(&self) -> Expiry {
        match *self {
            BatchOp::PutUntil { expiry, .. } => expiry,
            BatchOp::Put { .. } | BatchOp::Delete { .. } => Expiry::NEVER,
        }
    }
}
