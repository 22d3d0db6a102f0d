//! The state of each client between requests: the session, which moves with the client, and the record, which all
//! threads may read.

mod line;
mod peer;
mod place;
mod record;
pub(crate) mod session;
mod subscriptions;
mod tracks;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use peer::Peer;
pub(crate) use place::Place;
pub(crate) use record::{
    BLOCKED, BROADCASTS, CLOSING, DIRTY, IN_TRANSACTION, MONITORS, POSTPONED, Record, SUBSCRIBED, TRACKS,
};
pub(crate) use subscriptions::{Kind, Subscriptions};
pub(crate) use tracks::{Mode, Tracks};

/// All clients by client ID. A killed client is no longer among them, although its event loop closes it later.
#[derive(Default)]
pub(crate) struct Clients {
    records: Mutex<BTreeMap<u64, Arc<Record>>>,
}

impl Clients {
    pub(crate) fn add(&self, record: &Arc<Record>) {
        self.records.lock().insert(record.place.client_id, Arc::clone(record));
    }

    pub(crate) fn remove(&self, client_id: u64) {
        self.records.lock().remove(&client_id);
    }

    /// Returns the place of the client with this ID.
    pub(crate) fn place_of(&self, client_id: u64) -> Option<Place> {
        let records = self.records.lock();
        records.get(&client_id).filter(|record| !record.is_killed()).map(|record| record.place)
    }

    /// Returns the number of clients that had this flag at the end of their last turn.
    pub(crate) fn count_with(&self, flag: u32) -> usize {
        self.records.lock().values().filter(|record| record.has(flag) && !record.is_killed()).count()
    }

    /// Returns all records in order of arrival.
    pub(crate) fn all(&self) -> Vec<Arc<Record>> {
        self.records.lock().values().filter(|record| !record.is_killed()).cloned().collect()
    }
}
