//! When is memory that was unlinked free? Epochs, with readers that execute no fence.
//!
//! A reader *pins* itself before it loads a position from an index and unpins after its last access to what the position
//! led to. A writer that unlinks something *retires* it with the epoch of that moment; it is free once every pin is
//! younger.
//!
//! A pin is a plain store to a line of the thread's own: no locked instruction, no fence, so that consecutive reads
//! overlap in the processor. The price is paid by the reclaimer, which makes every running thread of the process execute
//! a barrier (`membarrier`) before it looks at the pins. Where the kernel refuses that call a pin has a fence after all.
//!
//! # Why it is sound
//! Let a writer unlink X (store U) and then read the epoch e, its tag. [`advance`] increments the epoch, makes every
//! thread execute a barrier, and then reads all pins; advances exclude one another.
//! - A reader whose pin an advance does not see stored that pin after the barrier, so its loads come after the barrier
//!   too and see every U from before it. A tag below the epoch of that advance was read before its increment, hence U
//!   was issued before the barrier.
//! - A reader whose pin is seen holds some epoch p. If p >= e + 2 it read the epoch after the increment to e + 2, which
//!   came after the barrier of the advance to e + 1, which came after U: the reader cannot have found X.
//!
//! So X is free when `e + 2 <= min(all pins seen, current epoch)`; that minimum is what [`safe`] returns.
//!
//! # Lock order
//! An operation may hold bucket locks of an index when it retires; a limbo lane's lock and the advance lock are leaves.

mod limbo;
mod pins;

pub use limbo::Limbo;
pub use pins::{Pin, advance, is_pinned, pin, safe, thread_index};

/// True where pins are plain stores because the kernel grants expedited barriers.
#[must_use]
pub fn readers_are_fence_free() -> bool {
    pins::barriers_are_expedited()
}
