//! Keys of which clients keep copies (`CLIENT TRACKING`): the clients are told when these copies are no longer valid.
//!
//! A key is noted before it is read, and looked for after a change: so no change is missed. A client that is told is
//! forgotten, until it reads the key again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::{self, Clients, Place};
use crate::mail::{Parcel, Post};

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

    /// Notes that a client reads a key.
    pub(crate) fn note(&self, post: &Post, raw: &[u8], key: &[u8], place: Place) {
        let mut readers = self.readers.lock();
        if readers.len() >= KEY_COUNT_MAX
            && !readers.contains_key(raw)
            && let Some(other) = readers.keys().next().cloned()
            && let Some(dropped) = readers.remove(&other)
        {
            send(post, &dropped.places, Some(&dropped.key));
        }
        let entry = readers.entry(raw.to_vec()).or_insert_with(|| Readers { key: key.to_vec(), places: Vec::new() });
        if !entry.places.contains(&place) {
            entry.places.push(place);
        }
        self.count.store(readers.len(), Ordering::SeqCst);
    }

    /// Tells the clients that have read the key that it was changed.
    #[inline]
    pub(crate) fn invalidate(&self, post: &Post, raw: &[u8]) {
        if !self.is_empty() {
            self.tell_readers(post, raw);
        }
    }

    #[cold]
    fn tell_readers(&self, post: &Post, raw: &[u8]) {
        let mut readers = self.readers.lock();
        if let Some(found) = readers.remove(raw) {
            send(post, &found.places, Some(&found.key));
        }
        self.count.store(readers.len(), Ordering::SeqCst);
    }

    /// Tells all tracking clients that everything was changed, whether they have read anything or not.
    pub(crate) fn invalidate_all(&self, post: &Post, clients: &Clients) {
        let mut readers = self.readers.lock();
        readers.clear();
        self.count.store(0, Ordering::SeqCst);
        let tracking = clients.all().into_iter().filter(|record| record.has(clients::TRACKS));
        send(post, &tracking.map(|record| record.place).collect::<Vec<_>>(), None);
    }
}

/// A client of RESP2 has no place for such messages, and gets none.
fn send(post: &Post, places: &[Place], key: Option<&[u8]>) {
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
    post.send(places, parcel);
}
