//! Who is told of keys that have expired.
//!
//! Each item that expired is told of once: by whoever takes it out of the index, which is the reaper, or a write to its key
//! that came before. A copy that compaction makes takes nothing out. `clear` tells of nothing.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::OnExpired;

/// The one who wants to be told, if there is one.
#[derive(Default)]
pub(super) struct ExpiredHook(RwLock<Option<Arc<OnExpired>>>);

impl fmt::Debug for ExpiredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpiredHook")
    }
}

impl ExpiredHook {
    /// Whoever was told before is not being told any more when this returns.
    pub(super) fn set(&self, told: Option<Arc<OnExpired>>) {
        *self.0.write() = told;
    }

    /// The caller holds no lock of the index.
    #[cold]
    pub(super) fn tell(&self, key: &[u8]) {
        if let Some(told) = &*self.0.read() {
            told(key);
        }
    }
}
