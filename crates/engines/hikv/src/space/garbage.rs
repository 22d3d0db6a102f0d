//! Garbage, and its bound: what was replaced or deleted and may still be looked at.
//!
//! An operation is pinned for microseconds, but a callback may take as long as it likes, and until then nothing that is unlinked
//! becomes free. So that a slow callback does not fill the disk unseen, writers are held up while more than [`GARBAGE_BYTES_MAX`]
//! wait: each write for a time that grows with what is above the bound. Nothing fails, and what still grows, grows so slowly that
//! an operator can find the cause: the stats tell how much waits, how many writes were held up, and how long the oldest pin has
//! been there.
//!
//! A writer that is pinned itself is inside of a callback, perhaps of the very one that is waited for, and goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// More than this waits only where a reader takes its time: writers of the largest values included, who free what they can
/// first.
pub(crate) const GARBAGE_BYTES_MAX: u64 = 64 << 20;
/// How long a write is held up at least, and at most: at twice the bound.
const HELD_UP_MIN: Duration = Duration::from_millis(1);
const HELD_UP_MAX: Duration = Duration::from_millis(100);
/// Writes that were held up.
#[derive(Debug, Default)]
pub(crate) struct HeldUp(AtomicU64);

impl HeldUp {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Holds up a writer while so much waits.
    pub(super) fn hold_up(&self, garbage_bytes: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
        let above = garbage_bytes.saturating_sub(GARBAGE_BYTES_MAX) as f64 / GARBAGE_BYTES_MAX as f64;
        thread::sleep(HELD_UP_MAX.mul_f64(above.min(1.0)).max(HELD_UP_MIN));
    }
}
