//! Notifications of expired keys: `expired` events and invalidations of cached copies.
//!
//! The store reports each such key once, when it removes the item: up to a second after its time, or earlier when the
//! key is written.

use std::sync::Arc;

use hikv::Error;

use crate::keyspace::database::Database;
use crate::observers::events::EXPIRED;
use crate::observers::notify;
use crate::shared::Shared;

/// Notifies clients while this value lives. The store's threads never hold the last handle of their store.
pub(crate) struct ExpiryReports(Arc<Shared>);

impl ExpiryReports {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<ExpiryReports, Error> {
        let shown = Arc::downgrade(shared);
        let callback = move |raw: &[u8]| shown.upgrade().iter().for_each(|shared| report_expired(shared, raw));
        shared.keyspace.store.on_expired(Some(Arc::new(callback)))?;
        Ok(ExpiryReports(Arc::clone(shared)))
    }
}

impl Drop for ExpiryReports {
    fn drop(&mut self) {
        // In a forked child there is no client to notify.
        let _ = self.0.keyspace.store.on_expired(None);
    }
}

fn report_expired(shared: &Shared, raw: &[u8]) {
    let tracking = &shared.observers.tracking;
    let is_notified = shared.administration.settings.notified_classes() & EXPIRED != 0;
    if !is_notified && tracking.is_empty() {
        return;
    }
    let (keyspace, items) = (&shared.keyspace, shared.keyspace.items(None));
    let found = Database::all().find_map(|db| {
        let namespace = keyspace.namespace(db);
        let of_collection = || keyspace.view(items, namespace)?.key_of(raw);
        namespace.key_of(raw).or_else(of_collection).map(|key| (db, key))
    });
    let Some((db, key)) = found else { return };
    tracking.invalidate(shared.message_access(), (&keyspace.namespace(db).raw(key), key), None);
    tracking.announce(shared.message_access());
    if is_notified {
        notify::notify_event(shared, EXPIRED, "expired", db, key);
    }
}
