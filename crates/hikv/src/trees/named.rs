//! A tree with a name, as all its handles share it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::{Space, TreeId};
use engine::Error;
use parking_lot::Mutex;
use transact::{Gate, Holder};

use super::WAIT_MAX;

/// A tree with a name.
pub(crate) struct Named {
    /// Writers of the tree's keys pass it. It is closed while the tree itself changes.
    gate: Arc<Gate>,
    /// The tree's space as a word, or 0 once it was dropped. Changed while the gate is closed.
    space: AtomicU64,
    name: Mutex<Box<str>>,
    /// The opening of a store that the tree belongs to.
    owner: u64,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Named").field(&self.name.lock()).finish()
    }
}

impl Named {
    pub(super) fn new(name: &str, id: TreeId, owner: u64) -> Named {
        let space = AtomicU64::new(Space::of(id).to_word());
        Named { gate: Arc::default(), space, name: Mutex::new(name.into()), owner }
    }

    pub(super) fn owner(&self) -> u64 {
        self.owner
    }

    pub(crate) fn name(&self) -> Box<str> {
        self.name.lock().clone()
    }

    /// Returns the tree's present space.
    #[inline]
    pub(crate) fn space(&self) -> Result<Space, Error> {
        Space::of_word(self.space.load(Ordering::Acquire)).ok_or_else(|| self.no_such_tree())
    }

    #[cold]
    fn no_such_tree(&self) -> Error {
        Error::NoSuchTree { name: self.name() }
    }

    /// Returns the gate of writers: the tree keeps its space while one of them has a window open.
    #[inline]
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Keeps writers out until the holder is dropped, once those under way have ended.
    pub(super) fn close(&self, holder: &Holder<'_>) -> Result<(), Error> {
        let closed = holder.close([&self.gate].into_iter(), WAIT_MAX);
        closed.map_err(|_| Error::TreeBusy { name: self.name() })
    }

    /// Sets the id. The caller has closed the gate.
    pub(super) fn set_id(&self, id: TreeId) {
        self.space.store(Space::of(id).to_word(), Ordering::Release);
    }

    /// Marks the tree as dropped. The caller has closed the gate.
    pub(super) fn set_dropped(&self) {
        self.space.store(0, Ordering::Release);
    }

    pub(super) fn set_name(&self, name: &str) {
        *self.name.lock() = name.into();
    }
}
