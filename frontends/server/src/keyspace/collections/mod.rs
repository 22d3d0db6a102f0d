//! Hashes, sets, lists, sorted sets and streams: items of one tree (`docs/format/collections.md`).
//!
//! [`View`] is a database's collections as a command sees them, [`Collection`] one of them, and [`Edit`] a change of
//! one. All of them use [`Items`](super::items::Items), so the changes of a transaction are among its others, and are
//! written in one step.
//!
//! | step of a command | a crash after it leaves |
//! |---|---|
//! | 1 reserve ids, if none is left: the head | everything as before |
//! | 2 one batch: records, elements, rows of dead elements, strings | all of it done |
//!
//! | step of the background, for each group | a crash after it leaves |
//! |---|---|
//! | 3 for a collection that has expired: delete its record; it is dead, and its due row is its row | its row |
//! | 4 delete elements of a dead collection | fewer of its elements, and its row |
//! | 5 delete the row of a dead collection that has no elements | all of it done |
//! | 6 for an emptied database, one batch: records go, their elements are dead | all of it done |
//! | 7 delete the row of an emptied database without records | all of it done |
//!
//! | step of a loader, for a large collection | a crash after it leaves |
//! |---|---|
//! | 7 batches of its elements, the first with the row of a dead collection | what step 5 deletes |
//! | 8 one batch: the last elements and the record; the row goes | all of it done |
//!
//! A loader ([`Import`](crate::Import)) has the store for itself, so steps 3 to 6 are not done while it runs.
//!
//! # Concurrency
//! A command of an event loop locks its keys ([`Locks`]) once the tree exists, those on strings included. A command
//! with exclusive access, and one in the background, has its keys alone. Step 3 has a lane of the gate and the lock of
//! the key, and is not done while a command runs in the background. So nothing that a command has read of its keys
//! changes before its batch, except that a key may expire: then its record has an expiry that has passed, and its due
//! row is still there. Steps 4 to 7 need no lock, because no command uses dead elements; one thread at a time does them
//! ([`Pace::turn`](pace::Pace::turn)): that of `reclaimer`, or one that helps it.
//!
//! Lock order: the gate's lanes, the turn, the locks of keys, the ids.

mod collection;
mod edit;
mod encode;
mod fill;
pub(crate) mod layout;
pub(crate) mod list;
mod locks;
pub(crate) mod pace;
mod reclaim;
mod record;
pub(crate) mod sorted_set;
pub(crate) mod stream;
mod view;
mod wake;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use catalog::TreeId;
use hikv::{Error, FrontEnd, Store};
use parking_lot::Mutex;

use crate::errors::{FixedError, Refusal};
pub(crate) use collection::Collection;
pub(crate) use edit::Edit;
pub(crate) use fill::Filling;
use layout::{Layout, TREE};
pub(crate) use locks::{Locked, Locks};
use pace::Pace;
pub(crate) use reclaim::Reclaim;
pub(crate) use record::{CollectionType, Record, StreamState};
pub(crate) use view::{Changes, View};
use wake::Wake;

/// Number of ids that are reserved with one write.
const ID_COUNT: u64 = 1 << 16;

/// The server's state for collections.
#[derive(Default)]
pub(crate) struct Collections {
    /// The id of the tree; 0 while there is none, and so no collection.
    tree: AtomicU32,
    pub(crate) locks: Locks,
    /// Reserved ids.
    ids: Mutex<Range<u64>>,
    pub(crate) wake: Wake,
    pub(crate) pace: Pace,
}

impl Collections {
    /// Finds the tree in the store's catalog.
    pub(crate) fn load(store: &Store) -> Result<Collections, Error> {
        let collections = Collections::default();
        if FrontEnd::of(store).has_catalog()
            && let Some(tree) = store.trees()?.into_iter().find(|tree| tree.name == TREE)
        {
            collections.tree.store(tree.id, Ordering::Release);
            collections.wake.wake_for_lost();
        }
        Ok(collections)
    }

    /// Returns whether there may be collections.
    #[inline]
    pub(crate) fn exist(&self) -> bool {
        self.tree.load(Ordering::Acquire) != 0
    }

    /// Returns how they are stored, if there may be any.
    #[inline]
    pub(crate) fn layout(&self) -> Option<Layout> {
        let tree = self.tree.load(Ordering::Acquire);
        (tree != 0).then(|| Layout::of(TreeId::new(tree)))
    }

    /// Creates the tree. No command is under way.
    pub(super) fn begin(&self, store: &Store) -> Result<(), Error> {
        let tree = FrontEnd::of(store).create_tree(TREE)?;
        self.tree.store(tree.number(), Ordering::Release);
        self.wake.wake();
        Ok(())
    }

    /// Returns an id that no collection has or had.
    fn new_id(&self, store: &Store, layout: Layout) -> Result<u64, Refusal> {
        let mut ids = self.ids.lock();
        if let Some(id) = ids.next() {
            return Ok(id);
        }
        let head = layout.head();
        let first = match store.get(&head)? {
            None => 1,
            Some(next) => u64::from_le_bytes((*next).try_into().map_err(|_| FixedError::DamagedCollection)?),
        };
        store.put(&head, (first + ID_COUNT).to_le_bytes())?;
        *ids = first + 1..first + ID_COUNT;
        Ok(first)
    }
}
