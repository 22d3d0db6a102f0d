//! Counts of the handles that keep a store open in this process. They make two errors more useful: that of a second
//! opening, which would otherwise only say 'this process itself', and that of a close while other handles exist.
//!
//! The counts are for messages only; nothing depends on them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The kind of a handle that keeps a store open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Store,
    Tree,
    Ordered,
    Range,
    Snapshot,
    Reader,
}

const NAMES: [(Kind, &str, &str); 6] = [
    (Kind::Store, "handle", "handles"),
    (Kind::Tree, "tree", "trees"),
    (Kind::Ordered, "ordered view", "ordered views"),
    (Kind::Range, "range", "ranges"),
    (Kind::Snapshot, "snapshot", "snapshots"),
    (Kind::Reader, "reader", "readers"),
];

/// The handles of one opening.
#[derive(Debug)]
struct Handles {
    place: PathBuf,
    counts: [AtomicU32; NAMES.len()],
}

/// All openings of this process, and some that have ended.
static OPENINGS: Mutex<Vec<Weak<Handles>>> = Mutex::new(Vec::new());

/// One handle, counted while it lives.
#[derive(Debug)]
pub(crate) struct Handle {
    all: Arc<Handles>,
    kind: Kind,
}

impl Handle {
    /// Returns the first handle of the store at `path`.
    pub(crate) fn first(path: &Path) -> Handle {
        let all = Arc::new(Handles { place: place(path), counts: Default::default() });
        let mut openings = OPENINGS.lock().unwrap_or_else(PoisonError::into_inner);
        openings.retain(|opening| opening.strong_count() > 0);
        openings.push(Arc::downgrade(&all));
        Handle::counted(all, Kind::Store)
    }

    /// Returns another handle of the same opening.
    pub(crate) fn another(&self, kind: Kind) -> Handle {
        Handle::counted(Arc::clone(&self.all), kind)
    }

    fn counted(all: Arc<Handles>, kind: Kind) -> Handle {
        all.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        Handle { all, kind }
    }

    /// Drops this handle, and returns a list of the others that keep the store open, or `None` if there are none.
    pub(crate) fn others(self) -> Option<String> {
        let all = Arc::clone(&self.all);
        drop(self);
        list([&*all].into_iter())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.all.counts[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns a list of the handles that keep the store at `path` open in this process, or `None` if it is not open.
pub(crate) fn of(path: &Path) -> Option<String> {
    let place = place(path);
    let openings = OPENINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let openings: Vec<_> = openings.iter().filter_map(Weak::upgrade).filter(|opening| opening.place == place).collect();
    list(openings.iter().map(|opening| &**opening))
}

/// Lists the handles of some openings.
fn list<'a>(openings: impl Iterator<Item = &'a Handles>) -> Option<String> {
    let (mut list, mut separator) = (String::new(), "");
    for opening in openings {
        for (kind, one, many) in NAMES {
            let count = opening.counts[kind as usize].load(Ordering::Relaxed);
            if count > 0 {
                let _ = write!(list, "{separator}{count} {}", if count == 1 { one } else { many });
                separator = ", ";
            }
        }
    }
    (!list.is_empty()).then_some(list)
}

/// Returns the path without links.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
