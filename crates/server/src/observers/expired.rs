//! What clients are told of keys that have expired: `expired` notifications, and that their copies are good no more.
//!
//! The store says so, once for each such key, when it takes the item away: up to a second after its time, or when the key
//! is written before that.

use std::sync::Arc;

use hikv::Error;

use crate::keyspace::database::Database;
use crate::observers::events::EXPIRED;
use crate::observers::notify;
use crate::shared::Shared;

/// Clients are told as long as this lives. The store's threads never hold the last handle of the store that they work for.
pub(crate) struct Telling(Arc<Shared>);

impl Telling {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Telling, Error> {
        let shown = Arc::downgrade(shared);
        let told = move |raw: &[u8]| shown.upgrade().iter().for_each(|shared| tell(shared, raw));
        shared.keyspace.store.on_expired(Some(Arc::new(told)))?;
        Ok(Telling(Arc::clone(shared)))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // In a child of a fork nobody is told anyway.
        let _ = self.0.keyspace.store.on_expired(None);
    }
}

fn tell(shared: &Shared, raw: &[u8]) {
    let tracking = &shared.observers.tracking;
    let is_notified = shared.administration.settings.notified_classes() & EXPIRED != 0;
    if !is_notified && tracking.is_empty() {
        return;
    }
    let found = Database::all().find_map(|db| shared.keyspace.namespace(db).key_of(raw).map(|key| (db, key)));
    let Some((db, key)) = found else { return };
    tracking.invalidate(shared.ways(), (raw, key), None);
    tracking.announce(shared.ways());
    if is_notified {
        notify::tell(shared, EXPIRED, "expired", db, key);
    }
}
