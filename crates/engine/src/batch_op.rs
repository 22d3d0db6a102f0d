//! What a batch consists of.

use crate::{Expiry, Version, Witness};

/// What a key has to hold for a batch to take place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The version of its value; `None` if it must not be there.
    pub version: Option<Version>,
}

impl Condition<'_> {
    /// True if the condition holds where the key has this value, or none.
    #[must_use]
    pub fn holds(&self, live: Option<(Witness, &[u8])>) -> bool {
        match (self.version, live) {
            (Some(version), Some((witness, value))) => witness.is_of(version, self.key, value),
            (version, live) => version.is_none() && live.is_none(),
        }
    }
}

/// One operation of a batch. Key and value lie at the same place in all: a batch asks for them again and again.
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
    /// Puts or replaces, and the key expires.
    PutUntil {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When it expires.
        expiry: Expiry,
    },
    /// Deletes, if the key is there.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> BatchOp<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match *self {
            BatchOp::Put { key, .. } | BatchOp::PutUntil { key, .. } | BatchOp::Delete { key } => key,
        }
    }

    /// The key, where a batch deletes one and its conditions are of no other. That is one step by itself, without what makes one of several.
    #[must_use]
    pub fn single_delete(conditions: &[Condition<'_>], ops: &[BatchOp<'a>]) -> Option<&'a [u8]> {
        let key = ops.first()?.key();
        let deletes_it = |op: &BatchOp<'_>| op.value().is_none() && op.key() == key;
        (ops.iter().all(deletes_it) && conditions.iter().all(|condition| condition.key == key)).then_some(key)
    }

    /// The value, `None` if the key is deleted.
    #[must_use]
    pub const fn value(&self) -> Option<&'a [u8]> {
        match *self {
            BatchOp::Put { value, .. } | BatchOp::PutUntil { value, .. } => Some(value),
            BatchOp::Delete { .. } => None,
        }
    }

    /// When the key expires, if it is put.
    #[must_use]
    pub const fn expiry(&self) -> Expiry {
        match *self {
            BatchOp::PutUntil { expiry, .. } => expiry,
            BatchOp::Put { .. } | BatchOp::Delete { .. } => Expiry::NEVER,
        }
    }
}
