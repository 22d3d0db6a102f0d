//! Who hears of it when a key was changed.

use crate::notify::{self, Class, EXPIRED};
use crate::shared::Shared;
use crate::tracking;

/// Tells of a change those who watch the key, those who listen, and those who keep a copy.
pub(crate) fn tell(shared: &Shared, class: Class, event: &str, db: u8, key: &[u8]) {
    let slot = shared.databases.slot(db);
    shared.watches.touch(slot, key);
    notify::tell(shared, class, event, db, key);
    let tells_expired = shared.settings.notified_classes() & EXPIRED != 0;
    if tells_expired || !shared.tracking.is_empty() {
        look_at_expiry(shared, &slot.raw(key));
        tracking::invalidate(shared, &slot.raw(key));
    }
}

/// Has the first loop, which tells of what expires, wake in time for the key, given its name in the store.
#[cold]
pub(crate) fn look_at_expiry(shared: &Shared, raw: &[u8]) {
    if shared.expirations.look_at(&shared.store, raw).unwrap_or(false) {
        shared.mailboxes[0].wake();
    }
}
