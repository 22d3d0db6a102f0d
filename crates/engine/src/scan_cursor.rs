//! The position of a scan.

use std::any::Any;
use std::fmt;
use std::ops::Bound;

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// The position of a scan. It holds no engine resources except memory that the engine reuses from one step to the next.
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
    /// Returns the start of a scan from `from`, upwards or downwards.
    #[must_use]
    pub fn new(from: Bound<&[u8]>, direction: Direction) -> ScanCursor {
        ScanCursor { from: from.map(<[u8]>::to_vec), direction, state: None }
    }

    /// Returns the bound of the next key.
    #[must_use]
    pub fn from(&self) -> Bound<&[u8]> {
        self.from.as_ref().map(Vec::as_slice)
    }

    /// Returns the direction.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns true for a descending scan.
    #[must_use]
    pub fn is_backward(&self) -> bool {
        self.direction == Direction::Backward
    }

    /// For engines: returns the bound, the direction, and the engine's own state, which is created if absent.
    pub fn parts<T: Any + Send + Sync + Default>(&mut self) -> (Bound<&[u8]>, Direction, &mut T) {
        if !self.state.as_ref().is_some_and(|state| state.is::<T>()) {
            self.state = Some(Box::<T>::default());
        }
        let state = self.state.as_mut().and_then(|state| state.downcast_mut()).expect("the state was created above");
        (self.from.as_ref().map(Vec::as_slice), self.direction, state)
    }

    /// For engines: returns the engine's own state, if present.
    #[must_use]
    pub fn state<T: Any>(&self) -> Option<&T> {
        self.state.as_ref().and_then(|state| state.downcast_ref())
    }

    /// For engines: continues at the bound that `next` returns for the engine's own state. Returns false, and leaves
    /// the cursor unchanged, if there is none.
    pub fn continue_at_state<T: Any>(&mut self, next: impl FnOnce(&T) -> Option<Bound<&[u8]>>) -> bool {
        let state = self.state.take();
        let next = state.as_ref().and_then(|state| state.downcast_ref()).and_then(next);
        let goes_on = next.is_some();
        next.into_iter().for_each(|next| self.continue_from(next));
        self.state = state;
        goes_on
    }

    /// For engines: continues after `key`.
    pub fn continue_after(&mut self, key: &[u8]) {
        self.continue_from(Bound::Excluded(key));
    }

    /// For engines: continues at `from`.
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
