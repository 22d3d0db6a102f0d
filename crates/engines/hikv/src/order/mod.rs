//! The ordered half of HiKV (paper, section 3.2): how the order is kept, and the work of writers for it.
//!
//! Every write takes a ticket under the bucket's lock, before publishing, and fills the ticket with the change once the
//! write is durable. In the background the changes of each queue are applied to a B+tree in DRAM, many at a time. So
//! the changes of a key are applied in the order in which they were published. A thread that waits for all tickets
//! taken so far sees in the tree every write that any thread could have read before.
//!
//! A replaced item is retired by the thread that applied the change, because the tree refers to the item until then.
//!
//! A store without order has the same type: its phase is always off, and writers take no ticket. The reasons are in
//! `docs/decisions/0012-build-order-on-the-first-request.md`.
//!
//! # Lock order
//! bucket lock -> (ticket) ; drainer of a queue -> tree -> delta; build. A writer that holds a ticket takes no lock
//! except the stash's before filling the ticket. No thread helps while it holds a bucket lock.

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
mod queues;
mod ring;
mod scan;
mod scan_at;
mod sorted;
mod source;
mod tree;
mod written;

pub use ordered::Ordered;
pub(crate) use scan::Scans;
pub(crate) use source::Source;
pub(crate) use written::{Ticket, Written};
