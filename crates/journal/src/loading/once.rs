//! The scope of a thread that reads much of a region once, for example a walk over all items.

use std::cell::Cell;

thread_local! {
    /// Number of open scopes of this thread. A thread that walks one region does not use another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// An open scope: pages that the thread loads until it ends are evicted before all others.
pub(crate) struct Once(());

impl Once {
    pub(crate) fn begin() -> Once {
        DEPTH.set(DEPTH.get() + 1);
        Once(())
    }

    /// Returns true if the calling thread is in such a scope.
    #[inline]
    pub(super) fn is_open() -> bool {
        DEPTH.get() > 0
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
