//! A tree with a name, as all its handles share it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::{Space, TreeId};
use engine::Error;
use parking_lot::Mutex;

use super::gate::{Closed, Gate, Pass};

/// A tree with a name.
pub(crate) struct Named {
    gate: Gate,
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
        Named { gate: Gate::default(), space, name: Mutex::new(name.into()), owner }
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

    /// Runs an operation that may write keys. The tree keeps its space until the operation ends.
    #[inline]
    pub(crate) fn write<R>(&self, operate: impl FnOnce(Space) -> Result<R, Error>) -> Result<R, Error> {
        let _pass = self.pass();
        operate(self.space()?)
    }

    /// Lets an operation write keys: the tree keeps its space until the guard is dropped.
    #[inline]
    pub(crate) fn pass(&self) -> Pass<'_> {
        self.gate.pass()
    }

    /// Keeps writers out until the guard is dropped, once those under way have ended.
    pub(super) fn close(&self) -> Result<Closed<'_>, Error> {
        self.gate.close()?.ok_or_else(|| Error::TreeBusy { name: self.name() })
    }

    pub(super) fn set_id(&self, id: TreeId, _closed: &Closed<'_>) {
        self.space.store(Space::of(id).to_word(), Ordering::Release);
    }

    pub(super) fn set_dropped(&self, _closed: &Closed<'_>) {
        self.space.store(0, Ordering::Release);
    }

    pub(super) fn set_name(&self, name: &str) {
        *self.name.lock() = name.into();
    }
}
