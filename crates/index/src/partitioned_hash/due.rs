//! Volatile due times of segments, for callers that give entries an expiry.
//!
//! Each segment stores a due time that is not later than the earliest due time of its entries, or [`NEVER`] if no
//! entry has one. The index stores these times and passes them on at splits. Their meaning is the caller's.
//!
//! # Invariants
//! - A writer, under the bucket's lock, first publishes its entry, then lowers the due time of the segment, then
//!   that of the index.
//! - A visitor of a segment first resets the due time, then reads the entries, then lowers the due time to the
//!   earliest one that it found. So an entry that the visitor missed lowers the due time afterwards. The visitor
//!   holds the partition's lock, which keeps out splits, because they pass the due time on.
//! - A visitor of all segments resets the due time of the index before it reads that of the first segment. So the
//!   next round notices a due time that was lowered behind the visitor.

use std::sync::atomic::{AtomicU64, Ordering};

/// No due time.
pub const NEVER: u64 = u64::MAX;
/// The due times of the entries are unknown; a visit determines them.
pub(super) const UNKNOWN: u64 = 0;

/// The earliest of several due times.
#[derive(Debug)]
pub(super) struct Due(AtomicU64);

impl Due {
    pub(super) fn at(moment: u64) -> Due {
        Due(AtomicU64::new(moment))
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn take(&self) -> u64 {
        self.0.swap(NEVER, Ordering::SeqCst)
    }

    /// Lowers the due time. It writes even if nothing changes: a visitor that resets the due time afterwards then
    /// sees everything that the caller published before.
    pub(super) fn lower(&self, moment: u64) {
        self.0.fetch_min(moment, Ordering::SeqCst);
    }
    /// Lowers the due time of all segments. If nothing changes, it does not write to the line.
    pub(super) fn lower_rarely(&self, moment: u64) {
        if moment < self.get() {
            self.lower(moment);
        }
    }
}
