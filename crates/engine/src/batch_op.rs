//! The operations and conditions of a batch.

use epoch::Start;

use crate::{Expiry, Version, Witness};

/// A condition that a key must meet for a batch to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its required state.
    pub required: Required,
}

/// The state of a key that a condition requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Required {
    /// The key is absent.
    Absent,
    /// The key has this version.
    Version(Version),
    /// The key has the value of this witness, which was read after the start. Costs no hash. Once the start is not
    /// recent any more, the condition does not hold, whatever the value: the caller then needs the version.
    Read(Witness, Start),
}

impl From<Option<Version>> for Required {
    /// Returns the state of a key with this version, or of an absent one.
    fn from(version: Option<Version>) -> Required {
        version.map_or(Required::Absent, Required::Version)
    }
}

impl Condition<'_> {
    /// Returns true if the key's live value, `None` if it has none, meets the condition. The caller holds the key's
    /// lock since it has read the value.
    #[must_use]
    pub fn holds(&self, live: Option<(Witness, &[u8])>) -> bool {
        match (self.required, live) {
            (Required::Absent, live) => live.is_none(),
            (Required::Version(version), Some((witness, value))) => witness.is_of(version, self.key, value),
            (Required::Read(read, start), Some((witness, _))) => witness == read && start.is_recent(),
            (Required::Version(_) | Required::Read(..), None) => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A witness may stand for another value once the place was reused, which the epoch shows.
    #[test]
    fn witness_counts_while_its_start_is_recent() {
        let (read, later) = (Witness::of_item(16, 7, Expiry::NEVER), Witness::of_item(32, 7, Expiry::NEVER));
        let condition = |start| Condition { key: b"key", required: Required::Read(read, start) };
        let start = Start::now();
        // Other tests of this process start no epoch.
        assert!(condition(start).holds(Some((read, b"value"))));
        assert!(!condition(start).holds(Some((later, b"value"))) && !condition(start).holds(None));
        while start.is_recent() {
            epoch::advance();
        }
        assert!(!condition(start).holds(Some((read, b"the checksums collide"))));
        assert!(condition(Start::now()).holds(Some((read, b"value"))));
    }

    #[test]
    fn conditions_of_versions_and_absence() {
        let witness = Witness::of_item(16, 7, Expiry::NEVER);
        let condition = |required: Option<Version>| Condition { key: b"key", required: required.into() };
        let version = condition(Some(witness.version(b"key", b"value")));
        assert!(version.holds(Some((witness, b"value"))));
        assert!(!version.holds(Some((witness, b"walue"))) && !version.holds(None));
        assert!(condition(None).holds(None) && !condition(None).holds(Some((witness, b"value"))));
    }
}
