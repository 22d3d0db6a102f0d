//! How far a scan has come.

use std::any::Any;
use std::fmt;
use std::ops::Bound;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// Where a scan goes on. It holds nothing of the engine but memory that the engine uses from one step to the next.
pub struct ScanCursor {
    from: Bound<Vec<u8>>,
    direction: Direction,
    state: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for ScanCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanCursor").field("from", &self.from).field("direction", &self.direction).finish()
    }
}

impl ScanCursor {
    /// A scan from `from` on, upwards or downwards.
    #[must_use]
    pub fn new(from: Bound<&[u8]>, direction: Direction) -> ScanCursor {
        ScanCursor { from: from.map(<[u8]>::to_vec), direction, state: None }
    }

    /// Where it goes on.
    #[must_use]
    pub fn from(&self) -> Bound<&[u8]> {
        self.from.as_ref().map(Vec::as_slice)
    }

    /// Which way it goes.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// True if it goes downwards.
    #[must_use]
    pub fn is_backward(&self) -> bool {
        self.direction == Direction::Backward
    }

    /// For engines: where it goes on, which way, and the engine's own memory, made anew where there is none.
    pub fn parts<T: Any + Send + Sync + Default>(&mut self) -> (Bound<&[u8]>, Direction, &mut T) {
        if !self.state.as_ref().is_some_and(|state| state.is::<T>()) {
            self.state = Some(Box::<T>::default());
        }
        let state = self.state.as_mut().and_then(|state| state.downcast_mut()).expect("it was made just now");
        (self.from.as_ref().map(Vec::as_slice), self.direction, state)
    }

    /// For engines: the engine's own memory, where there is such.
    #[must_use]
    pub fn state<T: Any>(&self) -> Option<&T> {
        self.state.as_ref().and_then(|state| state.downcast_ref())
    }

    /// For engines: the next key is where the engine's own memory says; false if it says nowhere, and the cursor stays where it is.
    pub fn continue_at_state<T: Any>(&mut self, next: impl FnOnce(&T) -> Option<Bound<&[u8]>>) -> bool {
        let state = self.state.take();
        let next = state.as_ref().and_then(|state| state.downcast_ref()).and_then(next);
        let goes_on = next.is_some();
        next.into_iter().for_each(|next| self.continue_from(next));
        self.state = state;
        goes_on
    }

    /// For engines: the next key is the one after `key`.
    pub fn continue_after(&mut self, key: &[u8]) {
        self.continue_from(Bound::Excluded(key));
    }

    /// For engines: the next key is the first one from `from` on.
    pub fn continue_from(&mut self, from: Bound<&[u8]>) {
        let mut memory = match std::mem::replace(&mut self.from, Bound::Unbounded) {
            Bound::Included(memory) | Bound::Excluded(memory) => memory,
            Bound::Unbounded => Vec::new(),
        };
        self.from = from.map(|key| {
            memory.clear();
            memory.extend_from_slice(key);
            memory
        });
    }
}
