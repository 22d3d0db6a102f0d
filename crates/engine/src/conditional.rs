//! Writes that depend on the key's present item, for engines that look the item up, decide, and write if it is
//! unchanged.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the engine pins, and reads the key's item | nothing |
//! | 2 the decision, without any lock | nothing |
//! | 3 the engine prepares the new item, if there is one | free space |
//! | 4 the engine writes, if the key still has the item of step 1; otherwise it repeats from 1 | the old item or the new one |

use crate::{CurrentItem, Decision, Error, Expiry, Limits};

/// Does step 2 for a key whose unexpired item is `held`, and calls `write` for steps 3 and 4, with the new value and
/// its expiry, or `None` for a delete. Returns true if the write changes the key, and its result; `None` if the key
/// stays as it is.
///
/// # Errors
/// [`Error::ValueTooLong`], and those of `write`.
pub fn write_decided<'h, 'v, T>(
    held: Option<CurrentItem<'h>>,
    decide: impl FnOnce(Option<CurrentItem<'h>>) -> Decision<'v>,
    write: impl FnOnce(Option<(&[u8], Expiry)>) -> Result<T, Error>,
) -> Result<Option<(bool, T)>, Error> {
    let new = match decide(held) {
        Decision::Keep => return Ok(None),
        Decision::Put(value) => Some((value, held.map_or(Expiry::NEVER, |held| held.expiry))),
        Decision::PutUntil(value, expiry) => Some((value, expiry)),
        Decision::Delete => None,
    };
    if let Some((value, _)) = &new {
        Limits::check_value(value.len() as u64)?;
    }
    let changes = new.is_some() || held.is_some();
    let written = write(new.as_ref().map(|(value, expiry)| (&**value, *expiry)))?;
    Ok(Some((changes, written)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_without_expiry_keeps_existing_expiry() {
        let held = CurrentItem { value: b"old", expiry: Expiry::at_ms(5) };
        let put = |held, decision: Decision<'static>| {
            let write = |new: Option<(&[u8], Expiry)>| Ok(new.map(|(value, expiry)| (value.to_vec(), expiry)));
            write_decided(held, |_| decision, write).unwrap()
        };
        let value = || b"new"[..].into();
        let new = |expiry| Some((b"new".to_vec(), expiry));
        assert_eq!(put(Some(held), Decision::Put(value())), Some((true, new(held.expiry))));
        assert_eq!(put(None, Decision::Put(value())), Some((true, new(Expiry::NEVER))));
        assert_eq!(put(Some(held), Decision::PutUntil(value(), Expiry::NEVER)), Some((true, new(Expiry::NEVER))));
        assert_eq!(put(Some(held), Decision::Delete), Some((true, None)));
        assert_eq!(put(None, Decision::Delete), Some((false, None)));
        assert_eq!(put(Some(held), Decision::Keep), None);
    }
}
