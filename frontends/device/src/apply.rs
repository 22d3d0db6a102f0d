//! Key commands on a store of any engine.

use hikv::{Decision, Error, MediumError, Store};
use nvme::{Key, Status, StoreIf};

/// Returns the status of a failed operation. A failed medium and damage are internal errors of the device; its events
/// and health page give more details.
pub(crate) fn status_of(error: &Error) -> Status {
    match error {
        error if error.is_full() => Status::CAPACITY_EXCEEDED,
        Error::Medium(MediumError::ReadOnly) => Status::WRITE_PROTECTED,
        Error::KeyTooLong { .. } => Status::INVALID_KEY_SIZE,
        Error::ValueTooLong { .. } => Status::INVALID_VALUE_SIZE,
        Error::Unsupported { .. } | Error::NoOrder => Status::INVALID_OPCODE,
        _ => Status::INTERNAL_ERROR,
    }
}

/// Returns the status of a failed read of values: only here damage has its own status (figure 4).
pub(crate) fn status_of_read(error: &Error) -> Status {
    match error {
        Error::Medium(MediumError::Unreadable { .. } | MediumError::OutOfBounds { .. }) | Error::Corrupt { .. } => {
            Status::UNRECOVERED_ERROR
        }
        error => status_of(error),
    }
}

/// Stores a value, if `when` holds.
pub(crate) fn store(store: &Store, name: &Key, value: &[u8], when: StoreIf) -> Result<(), Status> {
    let key = name.as_bytes();
    let done = match when {
        StoreIf::Always => store.put(key, value).map(|()| true),
        StoreIf::Absent => store.insert_if_absent(key, value),
        StoreIf::There => store.update(key, |held| match held {
            Some(_) => Decision::Put(value.into()),
            None => Decision::Keep,
        }),
        StoreIf::Never => return exist(store, name).and(Err(Status::KEY_EXISTS)),
    };
    match done.map_err(|error| status_of(&error))? {
        true => Ok(()),
        false if when == StoreIf::Absent => Err(Status::KEY_EXISTS),
        false => Err(Status::KEY_NOT_FOUND),
    }
}

/// Returns whether a key exists.
pub(crate) fn exist(store: &Store, key: &Key) -> Result<(), Status> {
    let is_there = store.contains(key.as_bytes()).map_err(|error| status_of(&error))?;
    if is_there { Ok(()) } else { Err(Status::KEY_NOT_FOUND) }
}
