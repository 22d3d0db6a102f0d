//! What a client is asked to do, and what came of it.

use nvme::{Key, Kv, Status, StoreIf};

use crate::Error;
use crate::queue::Completed;

/// One of several things to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Stores a value.
    Store {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// When it is stored.
        when: StoreIf,
    },
    /// Reads a value.
    Retrieve {
        /// The key.
        key: Vec<u8>,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Asks for a key.
    Exist {
        /// The key.
        key: Vec<u8>,
    },
}

/// What came of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done; the key is there.
    Done,
    /// The value.
    Value(Vec<u8>),
    /// There is no such key.
    Missing,
    /// The key is there already.
    Exists,
    /// Something else.
    Failed(Status),
}

/// The namespace that devices here have.
pub(crate) const NAMESPACE: u32 = 1;

/// Room for a value that is read with others; longer ones are read again.
pub(crate) const ROOM_BYTES: usize = 4 << 10;

impl Operation {
    /// Whether doing it twice is as doing it once.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Operation::Store { when: StoreIf::There | StoreIf::Absent, .. })
    }

    fn key(&self) -> Result<Key, Error> {
        let (Operation::Store { key, .. }
        | Operation::Retrieve { key }
        | Operation::Delete { key }
        | Operation::Exist { key }) = self;
        Key::new(key).filter(|_| !key.is_empty()).ok_or(Error::KeyLength { len_bytes: key.len() })
    }

    /// The command, and the value that goes with it.
    pub(crate) fn command(&self) -> Result<(Kv, &[u8]), Error> {
        let key = self.key()?;
        Ok(match self {
            Operation::Store { value, when, .. } => {
                let value_bytes = u32::try_from(value.len()).map_err(|_| Status::INVALID_VALUE_SIZE)?;
                (Kv::Store { key, value_bytes, when: *when }, value)
            }
            Operation::Retrieve { .. } => (Kv::Retrieve { key, room_bytes: ROOM_BYTES as u32 }, &[]),
            Operation::Delete { .. } => (Kv::Delete { key }, &[]),
            Operation::Exist { .. } => (Kv::Exist { key }, &[]),
        })
    }

    /// What a completion says of it.
    pub(crate) fn outcome(&self, completed: Completed) -> Outcome {
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
