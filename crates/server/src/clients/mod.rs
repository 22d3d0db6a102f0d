//! What the server remembers of each client between its requests: the session, which goes where the client is served, and the
//! record, which all may look at.

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
pub(crate) use record::{BROADCASTS, CLOSING, DIRTY, IN_TRANSACTION, MONITORS, POSTPONED, Record, SUBSCRIBED, TRACKS};
pub(crate) use subscriptions::{Kind, Subscriptions};
pub(crate) use tracks::{Mode, Tracks};

/// Every client, by its number.
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

    /// The place of the client with this number.
    pub(crate) fn place_of(&self, client_id: u64) -> Option<Place> {
        self.records.lock().get(&client_id).map(|record| record.place)
    }

    /// How many have this flag, as far as their last turn told.
    pub(crate) fn count_with(&self, flag: u32) -> usize {
        self.records.lock().values().filter(|record| record.has(flag)).count()
    }

    /// All of them, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<Arc<Record>> {
        self.records.lock().values().cloned().collect()
    }
}
