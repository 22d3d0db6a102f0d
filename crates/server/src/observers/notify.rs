//! Keyspace notifications: messages about changes of keys, for clients that subscribe to them.
//!
//! Off unless `notify-keyspace-events` asks for them.

use super::events::{Class, KEYEVENT, KEYSPACE};
use crate::clients::Kind;
use crate::keyspace::database::Database;
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;

/// Reports that client `by` has changed a key of that database and namespace: to the clients that watch it, keep a copy, or
/// subscribe.
pub(crate) fn tell_changed(
    shared: &Shared,
    class: Class,
    event: &str,
    (db, namespace, key): (Database, Namespace, &[u8]),
    by: u64,
) {
    let observers = &shared.observers;
    observers.watches.touch(db, key);
    tell(shared, class, event, db, key);
    if !observers.tracking.is_empty() {
        observers.tracking.invalidate(shared.ways(), (&namespace.raw(key), key), Some(by));
    }
}

/// Tells of an event, if its class is wanted.
#[inline]
pub(crate) fn tell(shared: &Shared, class: Class, event: &str, db: Database, key: &[u8]) {
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
        pubsub.publish(&shared.post, Kind::Channel, &channel, event.as_bytes());
    }
    if wanted & KEYEVENT != 0 {
        pubsub.publish(&shared.post, Kind::Channel, format!("__keyevent@{db}__:{event}").as_bytes(), key);
    }
}
