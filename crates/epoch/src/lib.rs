//! Epoch-based reclamation: decides when memory that was unlinked can be reused. Readers execute no fence.
//!
//! A reader *pins* itself before loading a position from an index, and unpins after the last access to the memory
//! that the position leads to. A writer that unlinks an object *retires* it with the current epoch. The object is
//! free once every pin is younger.
//!
//! A pin is a plain store to the thread's own cache line: no locked instruction and no fence, so consecutive reads
//! overlap in the processor. The reclaimer pays instead: before reading the pins, it makes every running thread of
//! the process execute a barrier (`membarrier`). If the kernel refuses that call, each pin executes a fence.
//!
//! Module `protocol` contains the steps and the argument why they are sound; a model checker runs it.
//! `docs/decisions/0002-use-membarrier-instead-of-fences-in-readers.md` gives the reasons for the scheme.
//!
//! # Lock order
//! An operation may hold bucket locks of an index when it retires. A limbo lane's lock and the advance lock are
//! leaves.

mod grace;
mod inbox;
mod limbo;
mod pins;
mod protocol;

pub use grace::Grace;
pub use limbo::{FREED_COUNT_MAX, Limbo};
pub use pins::{
    Announcement, OldPin, Pin, Pinned, Start, advance, announcements, heavy_barrier, is_pinned, oldest_pin, pin, safe,
    thread_index,
};

/// Returns true if pins are plain stores because the kernel grants expedited barriers.
#[must_use]
pub fn readers_are_fence_free() -> bool {
    pins::barriers_are_expedited()
}
