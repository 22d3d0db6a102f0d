//! The ordered half of HiKV (paper, section 3.2): who keeps it, and what writers do for it.
//!
//! Every write takes a ticket under its bucket's lock, before it publishes, and fills it with the change once the write
//! is durable. In the background the changes of each queue are applied to a B+tree in volatile memory, many at a time.
//! So one key's changes are applied in the order in which they were published, and whoever waits for all tickets
//! taken so far sees in the tree whatever it or anybody could have read before.
//!
//! An item that was replaced is retired by whoever applied the change, since until then the tree refers to it.
//!
//! [`HashOnly`] stands for a store without order: nothing of all this is in its type. Why it is so:
//! `docs/decisions/0012-order-when-asked-for.md`.
//!
//! # Lock order
//! bucket lock -> (ticket) ; drainer of a queue -> tree -> delta; build. A writer that holds a ticket takes no lock but the
//! stash's before it fills it; nobody helps while holding a bucket lock.

mod build;
mod change;
mod check;
mod collect;
mod delta;
mod drain;
mod hash_only;
mod many;
mod merge;
mod ordered;
mod paged;
mod progress;
mod ring;
mod scan;
mod scan_at;
mod sorted;

use index::Position;
use pmem::{Backoff, Dram, Medium};

use super::HiKv;
use super::snapshots::Disposal;
use engine::{Error, OrderStats, OrderedEngine, Progress, Wanted};

pub use hash_only::HashOnly;
pub use ordered::Ordered;

/// What a write did to its key.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The item that it had before.
    pub old: Option<Position>,
    /// The item that it has now.
    pub new: Option<Position>,
}

/// How writers tell the ordered index.
pub trait Order<M: Medium, D: Dram>: Sized + Send + Sync + 'static {
    /// A promise to tell.
    type Ticket<'a>;

    /// A ticket for a change of this partition; `None` while its queue is full. The caller holds the bucket's lock.
    fn take(&self, partition: usize) -> Option<Self::Ticket<'_>>;

    /// True if the partition's queue has a place, and fewer changes of batches wait than it has places: so they are bounded by
    /// that and by what sixteen batches have. Others may take the room.
    fn has_room(&self, partition: usize) -> bool;

    /// The queue of a partition's changes.
    fn queue_of(&self, partition: usize) -> usize;

    /// Hands over what was written, and the old item, to be retired. The caller is pinned and holds no lock.
    fn tell(&self, disposal: Disposal<'_, M, D>, ticket: Self::Ticket<'_>, written: Written<'_>);

    /// As [`Order::tell`], of changes of one queue that happened together, in the order of the list: they are applied in the
    /// place of one ticket.
    fn tell_all(&self, disposal: Disposal<'_, M, D>, queue: usize, ticket: Self::Ticket<'_>, all: &[Written<'_>]);

    /// Makes room in the partition's full queue, or lets others run. The caller holds no lock, and is not pinned by itself.
    fn make_room(engine: &HiKv<M, D, Self>, partition: usize, backoff: &mut Backoff) -> Result<(), Error>;

    /// Forgets the order, before every key is deleted. Scans wait.
    fn suspend(&self, disposal: Disposal<'_, M, D>);

    /// Starts over after [`Order::suspend`].
    fn resume(&self);

    /// Empties the queues and gives up an unfinished build; false if something stays. Nobody writes meanwhile.
    fn settle(engine: &HiKv<M, D, Self>) -> Result<bool, Error>;

    /// How many keys are in order, if they are.
    fn key_count(&self) -> Option<u64>;

    /// Shows every item in the order of the keys, which is there, and returns how many. Nobody writes meanwhile.
    fn each_sorted(engine: &HiKv<M, D, Self>, each: &mut dyn FnMut(Position)) -> Result<u64, Error>;

    /// Does a bounded piece of the work.
    fn step(engine: &HiKv<M, D, Self>) -> Result<Progress, Error>;

    /// Who should step.
    fn wanted(&self) -> Wanted;

    /// The ordered operations, where there are any.
    fn operations(engine: &HiKv<M, D, Self>) -> Option<&dyn OrderedEngine>;

    /// The figures, where there are any.
    fn stats(&self) -> Option<OrderStats>;
}
