//! Keys of which clients keep copies (`CLIENT TRACKING`): the clients are told when these copies are no longer valid.
//!
//! A key is noted before it is read, and looked for after it was changed: so no change is missed. A client that is told
//! is forgotten, until it reads the key again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients;
use crate::mail::{self, Parcel, Place};
use crate::shared::Shared;

/// As in Redis (`tracking-table-max-keys`); a client that reads one key more is told that another is good no more.
const KEY_COUNT_MAX: usize = 1_000_000;

#[derive(Default)]
pub(crate) struct Tracking {
    count: AtomicUsize,
    readers: Mutex<HashMap<Vec<u8>, Readers>>,
}

struct Readers {
    /// The key as clients call it.
    key: Vec<u8>,
    places: Vec<Place>,
}

impl Tracking {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }
}

/// Notes that a client reads a key.
pub(crate) fn note(shared: &Shared, raw: &[u8], key: &[u8], place: Place) {
    let mut readers = shared.tracking.readers.lock();
    if readers.len() >= KEY_COUNT_MAX
        && !readers.contains_key(raw)
        && let Some(other) = readers.keys().next().cloned()
        && let Some(dropped) = readers.remove(&other)
    {
        send(shared, &dropped.places, Some(&dropped.key));
    }
    let entry = readers.entry(raw.to_vec()).or_insert_with(|| Readers { key: key.to_vec(), places: Vec::new() });
    if !entry.places.contains(&place) {
        entry.places.push(place);
    }
    shared.tracking.count.store(readers.len(), Ordering::SeqCst);
}

/// Tells the clients that have read the key that it was changed.
#[inline]
pub(crate) fn invalidate(shared: &Shared, raw: &[u8]) {
    if !shared.tracking.is_empty() {
        tell_readers(shared, raw);
    }
}

#[cold]
fn tell_readers(shared: &Shared, raw: &[u8]) {
    let mut readers = shared.tracking.readers.lock();
    if let Some(found) = readers.remove(raw) {
        send(shared, &found.places, Some(&found.key));
    }
    shared.tracking.count.store(readers.len(), Ordering::SeqCst);
}

/// Tells all tracking clients that everything was changed, whether they have read anything or not.
pub(crate) fn invalidate_all(shared: &Shared) {
    let mut readers = shared.tracking.readers.lock();
    readers.clear();
    shared.tracking.count.store(0, Ordering::SeqCst);
    let tracking = shared.clients.all().into_iter().filter(|record| record.has(clients::TRACKS));
    send(shared, &tracking.map(|record| record.place).collect::<Vec<_>>(), None);
}

/// A client of RESP2 has no place for such messages, and gets none.
fn send(shared: &Shared, places: &[Place], key: Option<&[u8]>) {
    let parcel = Parcel::of_resp3(|reply| {
        reply.push(2);
        reply.bulk(b"invalidate");
        match key {
            Some(key) => {
                reply.array(1);
                reply.bulk(key);
            }
            None => reply.null_array(),
        }
    });
    mail::send(shared, places, parcel);
}
