//! Keys that clients watch: a change of one marks its watchers.
//!
//! `WATCH` runs alone, so no change is half way when a key gets its first watcher; and `EXEC` runs alone, so every change
//! that happened has left its mark. Writes past the server leave none: `EXEC` goes by what a key held when it was watched, too
//! (`keyspace/items/premises.rs`).
//!
//! A key is watched in a database, as in Redis: after `SWAPDB` in what that database is then. A key that either database has is
//! touched by the swap; one that neither has is absent before and after, and watched on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::keyspace::database::Database;
use crate::keyspace::items::Seen;

/// A client's mark: one of its keys was changed.
pub(crate) type Mark = Arc<AtomicBool>;

/// A database and a key of it.
pub(crate) type Name = (Database, Vec<u8>);

#[derive(Default)]
pub(crate) struct Watches {
    /// Watched keys; where it is 0, writers look no further.
    count: AtomicUsize,
    marks: Mutex<HashMap<Name, Vec<Mark>>>,
}

/// A key that a client watches.
pub(crate) struct Watched {
    pub(crate) db: Database,
    pub(crate) key: Vec<u8>,
    /// What it held then, for what leaves no mark: it expires, or is written past the server.
    pub(crate) seen: Option<Seen>,
}

/// What one client watches.
#[derive(Default)]
pub(crate) struct Watching {
    pub(crate) mark: Mark,
    pub(crate) keys: Vec<Watched>,
}

impl Watches {
    pub(crate) fn add(&self, mark: &Mark, watched: &Watched) {
        let mut marks = self.marks.lock();
        marks.entry((watched.db, watched.key.clone())).or_default().push(Arc::clone(mark));
        self.count.store(marks.len(), Ordering::SeqCst);
    }

    pub(crate) fn remove(&self, mark: &Mark, watched: &Watched) {
        let mut marks = self.marks.lock();
        let name = (watched.db, watched.key.clone());
        if let Some(watchers) = marks.get_mut(&name) {
            watchers.retain(|other| !Arc::ptr_eq(other, mark));
            if watchers.is_empty() {
                marks.remove(&name);
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

    /// The watched keys for which `is_changed` says so.
    pub(crate) fn names_where(&self, is_changed: impl Fn(Database, &[u8]) -> bool) -> Vec<Name> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        self.marks.lock().keys().filter(|(db, key)| is_changed(*db, key)).cloned().collect()
    }
}
