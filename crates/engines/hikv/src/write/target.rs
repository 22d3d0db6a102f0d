//! A write on its way: the key, the new item, and the entry that was published.

use heap::{Heap, Reservation};
use index::Position;
use index::partitioned_hash::Published;
use pmem::{Dram, Medium};

use crate::cache::Hidden;
use crate::item;
use crate::order::{self, Written};
use engine::{Error, Expiry, Outcome, WriteResult};

/// The entry that a write expects of its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Any: the write takes place in any case.
    Anything,
    /// This item, or none.
    Item(Option<Position>),
    /// This item, which its copy replaces. A reader, also of a snapshot, may see either of the two.
    Original(Position),
}

/// The key that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTarget<'k> {
    pub(crate) signature: u64,
    pub(crate) key: &'k [u8],
    pub(crate) expected: Expected,
}

/// An item that was written and flushed, and that no reader sees yet.
pub(crate) struct Prepared<'r, D: Dram> {
    pub(crate) reservation: Reservation<'r, D>,
    pub(crate) expiry: Expiry,
    /// The snapshot epoch of the item.
    pub(crate) stamp: u32,
}

/// As [`Prepared`], by its position: the space belongs to the writer until it publishes the item, or reserves the space
/// again ([`PreparedPlace::hold`]) and frees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreparedPlace {
    pub(super) position: Position,
    pub(super) expiry: Expiry,
    pub(super) stamp: u32,
}

/// The thread that commits a published entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Committed {
    /// The thread that publishes it.
    Alone,
    /// The thread that publishes it together with others, whose items were ordered together.
    Together,
}

/// An entry that was published and not settled.
pub(super) struct Pending<'k, 'r> {
    pub(super) written: Written<'k>,
    /// The expiry of the old item, if one is replaced or removed.
    pub(super) old_expiry: Option<Expiry>,
    pub(super) published: Published,
    pub(super) ticket: order::Ticket<'r>,
    /// The key's copy in the read cache.
    pub(super) hidden: Hidden<'r, 'k>,
}

/// The result of a write attempt of this engine. A full queue returns the new item, if there is one.
pub(crate) type Tried<'r, D, T> = WriteResult<T, Option<Prepared<'r, D>>>;

/// The outcome of a write attempt of this engine, as [`Tried`].
pub(crate) type Attempt<'r, D> = Outcome<Option<Prepared<'r, D>>>;

impl Expected {
    #[inline(always)]
    pub(super) fn allows(self, present: Option<Position>) -> bool {
        match self {
            Expected::Anything => true,
            Expected::Item(item) => item == present.map(Position::item),
            Expected::Original(item) => present.is_some_and(|present| present.item() == item.item()),
        }
    }
}

impl<'k> WriteTarget<'k> {
    /// Returns the key with any entry.
    #[inline(always)]
    pub(crate) fn any(signature: u64, key: &'k [u8]) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Anything }
    }

    /// Returns the key with this item, which the caller saw under the pin that it still holds.
    pub(crate) fn holding(signature: u64, key: &'k [u8], item: Option<Position>) -> WriteTarget<'k> {
        WriteTarget { signature, key, expected: Expected::Item(item.map(Position::item)) }
    }
}

impl<D: Dram> Prepared<'_, D> {
    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position::of(self.reservation.place())
    }

    /// Stamps the item again, because a snapshot was taken since it was written.
    #[cold]
    pub(super) fn stamped_as<M: Medium>(self, medium: &M, stamp: u32) -> Result<Self, Error> {
        // SAFETY: the item was completely written to the reserved space, and no reader sees it yet.
        unsafe { item::restamp(medium, self.position(), stamp) }?;
        Ok(Prepared { stamp, ..self })
    }
}

impl PreparedPlace {
    /// Reserves the item's space again, so that it is freed if nothing is published there.
    pub(super) fn hold<D: Dram>(self, heap: &Heap<D>) -> Prepared<'_, D> {
        let place = self.position.place().expect("an item that was laid has a place");
        Prepared { reservation: heap.hold(place), expiry: self.expiry, stamp: self.stamp }
    }
}
