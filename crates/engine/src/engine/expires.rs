//! Keys that expire.

use std::sync::Arc;

use super::{Atomic, Decision, Reads, unsupported};
use crate::{Clock, Error, Expiry};

/// Receives the key of an item that has expired. The thread that removed the item calls it after its operation has
/// ended. The callback may use the store and should be quick. A panic ends only the call.
pub type OnExpired = dyn Fn(&[u8]) + Send + Sync;

/// As [`OnExpired`], with the value and the expiry of the item.
pub type OnExpiredItem = dyn Fn(&[u8], &[u8], Expiry) + Send + Sync;

/// The expiry of keys, and the callbacks for keys that have expired.
pub trait Expires: Reads + Atomic {
    /// Changes the key's expiry; returns true if the key was present. Writes a new item: the value is copied within the
    /// region.
    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        if !self.features().expiry {
            return Err(unsupported(self.name(), "keys that expire"));
        }
        self.update(key, &mut |held| match held {
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), expiry),
            None => Decision::Keep,
        })
    }

    /// Returns the key's expiry; `None` if the key is absent.
    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let mut expiry = None;
        self.get_part(key, &mut |_, held, _| expiry = Some(held))?;
        Ok(expiry)
    }

    /// Returns false if no key of the store expires.
    fn may_expire(&self) -> bool {
        true
    }

    /// Registers `callback`, which is called with each expired key after its removal: by the background within about a
    /// second, or by an earlier write to the key. Replaces any earlier callback, which no longer runs when this
    /// returns, unless the caller is inside that callback. `None` unregisters the callback. Engines without expiry
    /// never call it.
    fn on_expired(&self, _callback: Option<Arc<OnExpired>>) {}

    /// As [`Expires::on_expired`], for a callback that needs values: each value is copied before its item is removed.
    /// Each of the two methods replaces the callback of the other.
    fn on_expired_item(&self, _callback: Arc<OnExpiredItem>) {}

    /// Returns the clock that decides which keys have expired.
    fn clock(&self) -> &Clock;
}
