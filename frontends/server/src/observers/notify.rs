//! Keyspace notifications: messages about changes of keys, for subscribed clients.
//!
//! Disabled unless `notify-keyspace-events` enables them.

use super::events::{Class, KEYEVENT, KEYSPACE};
use crate::clients::Kind;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;

/// Reports that client `by` has changed a key of that database and namespace, to the clients that watch it, track it,
/// or subscribe.
pub(crate) fn report_changed(
    shared: &Shared,
    class: Class,
    event: &str,
    (db, namespace, key): (Database, Namespace, &[u8]),
    by: u64,
) {
    let observers = &shared.observers;
    observers.watches.touch(db, key);
    shared.waiters.note(class, db, key);
    notify_event(shared, class, event, db, key);
    if !observers.tracking.is_empty() {
        observers.tracking.invalidate(shared.message_access(), (&namespace.raw(key), key), Some(by));
    }
}

/// Registers that tracking client `client_id` reads a key.
pub(crate) fn track(shared: &Shared, key: (&[u8], &[u8]), client_id: u64) {
    let key_count_max = shared.administration.settings.tracked_key_count_max();
    shared.observers.tracking.note(shared.message_access(), key, client_id, key_count_max);
}

/// Publishes an event, if its class is enabled.
#[inline]
pub(crate) fn notify_event(shared: &Shared, class: Class, event: &str, db: Database, key: &[u8]) {
    let wanted = shared.administration.settings.notified_classes();
    if wanted & class != 0 {
        publish(shared, wanted, event, db, key);
    }
}

#[cold]
fn publish(shared: &Shared, wanted: Class, event: &str, db: Database, key: &[u8]) {
    let pubsub = &shared.observers.pubsub;
    if wanted & KEYSPACE != 0 {
        let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
        pubsub.publish(&shared.mailboxes, Kind::Channel, &channel, event.as_bytes());
    }
    if wanted & KEYEVENT != 0 {
        pubsub.publish(&shared.mailboxes, Kind::Channel, format!("__keyevent@{db}__:{event}").as_bytes(), key);
    }
}
