//! What commands on keys do to a store. Any engine may stand behind it.

use std::ops::ControlFlow;

use hikv::{Decision, Error, MediumError, Ordered, Store};
use nvme::{Key, ListWriter, RangeWriter, Status, StoreIf};

/// The status of an operation that failed.
pub(crate) fn status_of(error: &Error) -> Status {
    match error {
        Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => Status::CAPACITY_EXCEEDED,
        Error::Medium(MediumError::ReadOnly | MediumError::Poisoned { .. }) => Status::NAMESPACE_NOT_READY,
        Error::Medium(MediumError::Unreadable { .. } | MediumError::OutOfBounds { .. }) | Error::Corrupt { .. } => {
            Status::UNRECOVERED_ERROR
        }
        Error::KeyTooLong { .. } => Status::INVALID_KEY_SIZE,
        Error::ValueTooLong { .. } => Status::INVALID_VALUE_SIZE,
        Error::Unsupported { .. } | Error::HashOnly => Status::INVALID_OPCODE,
        _ => Status::INTERNAL_ERROR,
    }
}

/// Stores a value, if `when` holds.
pub(crate) fn store(store: &Store, key: &Key, value: &[u8], when: StoreIf) -> Result<(), Status> {
    let key = key.as_bytes();
    let done = match when {
        StoreIf::Always => store.put(key, value).map(|()| true),
        StoreIf::Absent => store.insert_if_absent(key, value),
        StoreIf::There => store.update(key, |held| match held {
            Some(_) => Decision::Put(value.into()),
            None => Decision::Keep,
        }),
    };
    match done.map_err(|error| status_of(&error))? {
        true => Ok(()),
        false if when == StoreIf::Absent => Err(Status::KEY_EXISTS),
        false => Err(Status::KEY_NOT_FOUND),
    }
}

/// Deletes a key, which need not be there unless `must_exist`.
pub(crate) fn delete(store: &Store, key: &Key, must_exist: bool) -> Result<(), Status> {
    let was_there = store.delete(key.as_bytes()).map_err(|error| status_of(&error))?;
    if was_there || !must_exist { Ok(()) } else { Err(Status::KEY_NOT_FOUND) }
}

/// Whether a key is there.
pub(crate) fn exist(store: &Store, key: &Key) -> Result<(), Status> {
    let is_there = store.contains(key.as_bytes()).map_err(|error| status_of(&error))?;
    if is_there { Ok(()) } else { Err(Status::KEY_NOT_FOUND) }
}

/// Appends a list of the keys from `from` on, in so much room.
pub(crate) fn list(ordered: &Ordered, from: &Key, room_bytes: usize, out: &mut Vec<u8>) -> Result<(), Status> {
    let mut writer = ListWriter::new(out, room_bytes);
    walk(ordered, from, |key, _| writer.push(key))
}

/// Appends keys and values from `from` on, in so much room, and says how much room the next item takes by itself: 0 if there is
/// none.
pub(crate) fn range(ordered: &Ordered, from: &Key, room_bytes: usize, out: &mut Vec<u8>) -> Result<u64, Status> {
    let mut writer = RangeWriter::new(out, room_bytes);
    let mut next_bytes = 0;
    walk(ordered, from, |key, value| {
        let has_room = writer.push(key, value);
        if !has_room {
            next_bytes = RangeWriter::alone_bytes(key, value) as u64;
        }
        has_room
    })?;
    Ok(next_bytes)
}

/// Shows the items whose keys the command set can name, from `from` on, until `each` has no room. Longer keys, which other users of
/// the store may have written, are passed over: all that begin alike at once.
fn walk(ordered: &Ordered, from: &Key, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Status> {
    let mut from = from.as_bytes().to_vec();
    loop {
        let mut past = None;
        let scanned = ordered.scan(&from, |key, value| {
            if key.len() > Key::BYTES_MAX {
                past = past_all_that_begin_with(&key[..Key::BYTES_MAX]);
                return ControlFlow::Break(());
            }
            if key.is_empty() || each(key, value) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        scanned.map_err(|error| status_of(&error))?;
        match past {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// The least key above all that begin with `start`, if there is one.
fn past_all_that_begin_with(start: &[u8]) -> Option<Vec<u8>> {
    let len = start.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut past = start[..len].to_vec();
    past[len - 1] += 1;
    Some(past)
}
