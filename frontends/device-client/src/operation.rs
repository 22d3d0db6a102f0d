//! Operations of a client and their outcomes.

use nvme::{Key, Kv, Status, StoreIf};

use crate::Error;
use crate::queue::Completed;

/// One of several operations, with owned or borrowed keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<K = Vec<u8>, V = Vec<u8>> {
    /// Stores a value.
    Store {
        /// The key.
        key: K,
        /// The value.
        value: V,
        /// The condition.
        when: StoreIf,
    },
    /// Reads a value.
    Retrieve {
        /// The key.
        key: K,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: K,
    },
    /// Checks whether a key exists.
    Exist {
        /// The key.
        key: K,
    },
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<V = Vec<u8>> {
    /// It was done; the key exists.
    Done,
    /// The value.
    Value(V),
    /// The key does not exist.
    Missing,
    /// The key already exists.
    Exists,
    /// Another status.
    Failed(Status),
}

/// The namespace of devices here.
pub(crate) const NAMESPACE: u32 = 1;

/// Buffer size of a value that is read with others; longer ones are read again.
pub(crate) const BUFFER_BYTES: usize = 4 << 10;

impl Outcome<&[u8]> {
    /// Returns the outcome with a copy of the value.
    #[must_use]
    pub fn to_owned(self) -> Outcome {
        match self {
            Outcome::Value(value) => Outcome::Value(value.to_vec()),
            Outcome::Done => Outcome::Done,
            Outcome::Missing => Outcome::Missing,
            Outcome::Exists => Outcome::Exists,
            Outcome::Failed(status) => Outcome::Failed(status),
        }
    }
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> Operation<K, V> {
    /// Returns whether it is idempotent.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Operation::Store { when: StoreIf::There | StoreIf::Absent, .. })
    }

    fn key(&self) -> Result<Key, Error> {
        let (Operation::Store { key, .. }
        | Operation::Retrieve { key }
        | Operation::Delete { key }
        | Operation::Exist { key }) = self;
        let key = key.as_ref();
        Key::new(key).filter(|_| !key.is_empty()).ok_or(Error::KeyLength { len_bytes: key.len() })
    }

    /// Returns the command, and its value.
    pub(crate) fn command(&self) -> Result<(Kv, &[u8]), Error> {
        let key = self.key()?;
        Ok(match self {
            Operation::Store { value, when, .. } => {
                let value = value.as_ref();
                let value_bytes = u32::try_from(value.len()).map_err(|_| Status::INVALID_VALUE_SIZE)?;
                (Kv::Store { key, value_bytes, when: *when }, value)
            }
            Operation::Retrieve { .. } => (Kv::Retrieve { key, buffer_bytes: BUFFER_BYTES as u32 }, &[]),
            Operation::Delete { .. } => (Kv::Delete { key }, &[]),
            Operation::Exist { .. } => (Kv::Exist { key }, &[]),
        })
    }

    /// Returns the outcome for a completion.
    pub(crate) fn outcome<'d>(&self, completed: &Completed<&'d [u8]>) -> Outcome<&'d [u8]> {
        match completed.status {
            status if status.is_success() && matches!(self, Operation::Retrieve { .. }) => {
                Outcome::Value(completed.data)
            }
            status if status.is_success() => Outcome::Done,
            status if status.is(Status::KEY_NOT_FOUND) => Outcome::Missing,
            status if status.is(Status::KEY_EXISTS) => Outcome::Exists,
            status => Outcome::Failed(status),
        }
    }
}
