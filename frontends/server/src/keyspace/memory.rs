//! The memory limit (`maxmemory`). Nothing is ever evicted: commands that need memory are refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hikv::{Clock, Store};

/// Lifetime of the cached store figures: gathering them costs more than a write.
const CACHE_MS: u64 = 10;

#[derive(Default)]
pub(crate) struct MemoryLimit {
    measured_ms: AtomicU64,
    was_over: AtomicBool,
}

impl MemoryLimit {
    /// Returns whether items and index occupy more than `bytes_max`; 0 means no limit.
    #[inline]
    pub(crate) fn is_over(&self, store: &Store, bytes_max: u64) -> bool {
        bytes_max > 0 && self.measure(store, bytes_max)
    }

    #[cold]
    fn measure(&self, store: &Store, bytes_max: u64) -> bool {
        let now_ms = Clock::default().now_ms();
        if now_ms.saturating_sub(self.measured_ms.load(Ordering::Acquire)) >= CACHE_MS {
            self.was_over.store(store.stats().live_bytes > bytes_max, Ordering::Relaxed);
            self.measured_ms.store(now_ms, Ordering::Release);
        }
        self.was_over.load(Ordering::Relaxed)
    }

    /// Invalidates the cached answer after a change of the limit.
    pub(crate) fn forget(&self) {
        self.measured_ms.store(0, Ordering::Release);
    }
}
