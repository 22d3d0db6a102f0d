//! The ordered half of HiKV (paper, section 3.2): how the order is kept, and what writers do for it.
//!
//! Every write takes a ticket under the bucket's lock, before publishing, and fills it with the change once the write is durable.
//! In the background the changes of each queue are applied to a B+tree in volatile memory, many at a time. So one key's changes are
//! applied in the order in which they were published, and a thread that waits for all tickets taken so far sees in the tree
//! whatever any thread could have read before.
//!
//! An item that was replaced is retired by the thread that applied the change, since until then the tree refers to it.
//!
//! A store without order is of the same type: its phase is always off, and writers take no ticket. Why it is so:
//! `docs/decisions/0012-build-order-on-the-first-request.md`.
//!
//! # Lock order
//! bucket lock -> (ticket) ; drainer of a queue -> tree -> delta; build. A writer that holds a ticket takes no lock but the
//! stash's before filling it; no thread helps while it holds a bucket lock.

mod applied;
mod build;
mod change;
mod check;
mod collect;
mod delta;
mod drain;
mod items;
mod many;
mod merge;
mod ordered;
mod paged;
mod progress;
mod ring;
mod scan;
mod scan_at;
mod sorted;
mod step;

use index::Position;

pub use ordered::Ordered;

/// What a write did to its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// The key.
    pub(crate) key: &'a [u8],
    /// The item that it had before.
    pub(crate) old: Option<Position>,
    /// The item that it has now.
    pub(crate) new: Option<Position>,
}

/// A promise to tell; none while the order is off.
pub(crate) type Ticket<'a> = Option<ring::Ticket<'a>>;
