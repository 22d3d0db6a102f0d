//! The approximate number of keys deleted since the last attempt to merge, plus the pairs that a sweep found missing
//! in sparse nodes.

use core::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Default)]
pub(crate) struct Vacated(AtomicU64);

impl Vacated {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the number and resets it.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
