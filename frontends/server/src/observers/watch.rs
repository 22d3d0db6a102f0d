//! Watched keys: a change of a key marks its watchers.
//!
//! `WATCH` has exclusive access, so no change is in progress when a key gets its first watcher; `EXEC` also has
//! exclusive access, so every completed change has left its mark. Writes that bypass the server leave no mark; for
//! those `EXEC` also compares the key's state with that at `WATCH` (`keyspace/items/watched_keys.rs`).
//!
//! As in Redis, a key is watched in a database: after `SWAPDB`, in the new contents of that database. The swap marks a
//! watched key that exists in either database; a key that exists in neither is absent before and after, and stays
//! watched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::keyspace::database::Database;
use crate::keyspace::items::KeyState;

/// A client's mark: one of its keys was changed.
pub(crate) type Mark = Arc<AtomicBool>;

/// A database and a key of it.
pub(crate) type Name = (Database, Vec<u8>);

#[derive(Default)]
pub(crate) struct Watches {
    /// Number of watched keys; while it is 0, writers check nothing more.
    count: AtomicUsize,
    marks: Mutex<HashMap<Name, Vec<Mark>>>,
}

/// The states of a key as a string and as a collection.
#[derive(Clone, Copy)]
pub(crate) struct WatchedStates {
    pub(crate) string: Option<KeyState>,
    pub(crate) record: Option<KeyState>,
}

/// The keys that one client watches.
#[derive(Default)]
pub(crate) struct Watching {
    pub(crate) mark: Mark,
    /// With their states at `WATCH`, to detect changes that leave no mark: expiry, and writes that bypass the server.
    pub(crate) keys: HashMap<Name, WatchedStates>,
}

impl Watches {
    pub(crate) fn add(&self, mark: &Mark, name: &Name) {
        let mut marks = self.marks.lock();
        marks.entry(name.clone()).or_default().push(Arc::clone(mark));
        self.count.store(marks.len(), Ordering::SeqCst);
    }

    pub(crate) fn remove(&self, mark: &Mark, name: &Name) {
        let mut marks = self.marks.lock();
        if let Some(watchers) = marks.get_mut(name) {
            watchers.retain(|other| !Arc::ptr_eq(other, mark));
            if watchers.is_empty() {
                marks.remove(name);
            }
        }
        self.count.store(marks.len(), Ordering::SeqCst);
    }

    /// Marks the clients that watch the key.
    #[inline]
    pub(crate) fn touch(&self, db: Database, key: &[u8]) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.mark(db, key);
        }
    }

    #[cold]
    fn mark(&self, db: Database, key: &[u8]) {
        if let Some(watchers) = self.marks.lock().get(&(db, key.to_vec())) {
            watchers.iter().for_each(|mark| mark.store(true, Ordering::SeqCst));
        }
    }

    /// Returns the watched keys for which `is_changed` returns true.
    pub(crate) fn names_where(&self, is_changed: impl Fn(Database, &[u8]) -> bool) -> Vec<Name> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        self.marks.lock().keys().filter(|(db, key)| is_changed(*db, key)).cloned().collect()
    }
}
