//! When is memory that was unlinked free? Epochs, with readers that execute no fence.
//!
//! A reader *pins* itself before loading a position from an index and unpins after the last access to what the position
//! led to. A writer that unlinks something *retires* it with the epoch of that moment; it is free once every pin is
//! younger.
//!
//! A pin is a plain store to a line of the thread's own: no locked instruction, no fence, so that consecutive reads
//! overlap in the processor. The price is paid by the reclaimer, which makes every running thread of the process execute
//! a barrier (`membarrier`) before it looks at the pins. Where the kernel refuses that call a pin has a fence after all.
//!
//! Why that is sound stands, with the steps themselves, in `protocol`, which a model checker runs; why the scheme is
//! worth it, in `docs/decisions/0002-use-membarrier-instead-of-fences-in-readers.md`.
//!
//! # Lock order
//! An operation may hold bucket locks of an index when it retires; a limbo lane's lock and the advance lock are leaves.

mod grace;
mod inbox;
mod limbo;
mod pins;
mod protocol;

pub use grace::Grace;
pub use limbo::{FREED_COUNT_MAX, Limbo};
pub use pins::{OldPin, Pin, Pinned, advance, is_pinned, oldest_pin, pin, safe, thread_index};

/// True where pins are plain stores because the kernel grants expedited barriers.
#[must_use]
pub fn readers_are_fence_free() -> bool {
    pins::barriers_are_expedited()
}
