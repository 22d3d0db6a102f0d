//! How thoroughly a store is checked, and how far a check has come.

use std::any::Any;

/// How thoroughly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// Head, chunk and index headers, the places that entries name, item headers: a line an item.
    Quick,
    /// The same; every key and value against checksum and index, every key by a lookup, what is free against what is
    /// named.
    Deep,
}

/// A check under way: of one store, from its start to its end.
#[derive(Debug)]
pub struct Check {
    depth: Depth,
    is_done: bool,
    item_count: u64,
    state: Option<Box<dyn Any + Send>>,
}

impl Check {
    /// A check that has not begun.
    #[must_use]
    pub fn new(depth: Depth) -> Check {
        Check { depth, is_done: false, item_count: 0, state: None }
    }

    /// How thorough it is.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// True once everything was checked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Items checked so far.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    /// For engines: an item more was checked.
    pub fn count_item(&mut self) {
        self.item_count += 1;
    }

    /// For engines: what the engine knows of the check under way, taken out; `None` where it has not begun.
    #[must_use]
    pub fn take_state<T: Any + Send>(&mut self) -> Option<Box<T>> {
        self.state.take().and_then(|state| state.downcast().ok())
    }

    /// For engines: the check goes on with this, or everything was checked.
    pub fn set_state<T: Any + Send>(&mut self, state: Option<Box<T>>) {
        self.is_done = state.is_none();
        self.state = state.map(|state| state as Box<dyn Any + Send>);
    }
}
