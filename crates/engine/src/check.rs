//! The depth and the progress of a check of a store.

use std::any::Any;

/// The depth of a check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// Reads the head, chunk and index headers, the places in entries, and item headers: one cache line per item.
    Quick,
    /// As `Quick`. Also compares every key and value with its checksum and with the index, looks up every key, and
    /// compares free space with the places in entries.
    Deep,
}

/// A check of one store that is under way.
#[derive(Debug)]
pub struct Check {
    depth: Depth,
    is_done: bool,
    item_count: u64,
    state: Option<Box<dyn Any + Send>>,
}

impl Check {
    /// Returns a check that has not begun.
    #[must_use]
    pub fn new(depth: Depth) -> Check {
        Check { depth, is_done: false, item_count: 0, state: None }
    }

    /// Returns the depth of the check.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Returns true once everything was checked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the number of items checked so far.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    /// For engines: counts one more checked item.
    pub fn count_item(&mut self) {
        self.item_count += 1;
    }

    /// For engines: takes out the engine's state of the check; `None` if the check has not begun.
    #[must_use]
    pub fn take_state<T: Any + Send>(&mut self) -> Option<Box<T>> {
        self.state.take().and_then(|state| state.downcast().ok())
    }

    /// For engines: stores the state from which the check continues; `None` if everything was checked.
    pub fn set_state<T: Any + Send>(&mut self, state: Option<Box<T>>) {
        self.is_done = state.is_none();
        self.state = state.map(|state| state as Box<dyn Any + Send>);
    }
}
