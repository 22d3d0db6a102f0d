//! Records: keys and values in one piece, as `items` writes them.

use engine::{Error, Witness};
use heap::{Place, PlaceKind};
use index::Position;
use index::bplus_tree::Keys;
use items::{Item, Plain};
use pmem::Medium;

/// The records of a store, for a thread that is pinned since before it found the positions, or keeps records from being freed
/// in another way.
pub(crate) struct Records<'m, M>(pub(crate) &'m M);

impl<'m, M: Medium> Records<'m, M> {
    /// The record that `position` names; its checksum is not compared.
    pub(crate) fn read(&self, position: Position) -> Result<Item<'m>, Error> {
        let capacity_bytes = match place_of(position)?.kind {
            PlaceKind::Slot(class) => class.bytes(),
            _ => self.0.len_bytes().saturating_sub(position.offset().0),
        };
        // SAFETY: as this type's head says, nobody stores to the record.
        Ok(unsafe { Item::read(self.0, position.offset(), capacity_bytes) }?)
    }

    /// As [`Records::read`], of a record that lies in a slot and does not expire, as most do. `None` says nothing.
    #[inline(always)]
    pub(crate) fn plain(&self, position: Position) -> Option<Plain<'m>> {
        Plain::in_slot(self.slot_bytes(position)?)
    }

    /// The slot that a record lies in; `None` says nothing.
    #[inline(always)]
    fn slot_bytes(&self, position: Position) -> Option<&'m [u8]> {
        let room = position.offset().span(position.slot_bytes()?);
        // SAFETY: as this type's head says; nobody stores to what a slot has behind its record.
        unsafe { self.0.bytes(room) }.ok()
    }
}

/// Up to here a record has its header and a key of 16 bytes, which may lie in two lines.
const HEAD_BYTES: u64 = 32;

impl<M: Medium> Records<'_, M> {
    /// Asks the cache for a record's header and a short key. Any position will do.
    #[inline(always)]
    pub(crate) fn prefetch_head(&self, position: Position) {
        self.0.prefetch_line(position.offset());
        self.0.prefetch_line(position.offset().plus(HEAD_BYTES - 1));
    }

    /// Asks the cache for a small record, and the beginning of a long one. Any position will do.
    #[inline(always)]
    pub(crate) fn prefetch_whole(&self, position: Position) {
        items::prefetch(self.0, position.offset(), position.slot_bytes());
    }

    /// The positions, for a caller who reads the record of each before it takes the next; `near` is shown some ahead of it, to ask the
    /// cache for them.
    pub(crate) fn in_time<'p>(
        &'p self,
        positions: &'p [Position],
        near: impl Fn(&Self, Position) + 'p,
    ) -> impl Iterator<Item = Position> + 'p {
        items::prefetch_ahead(positions, move |&position| near(self, position)).copied()
    }
}

impl<M: Medium> Keys for Records<'_, M> {
    type Error = Error;

    fn key(&self, position: Position) -> Result<&[u8], Error> {
        Ok(self.read(position)?.key)
    }

    #[inline(always)]
    fn has_key(&self, position: Position, key: &[u8]) -> bool {
        self.slot_bytes(position).is_some_and(|room| Plain::of_key(room, key).is_some())
    }

    #[inline(always)]
    fn prefetch(&self, position: Position) {
        self.0.prefetch_line(position.offset());
    }
}

/// Records whose values are going to be read: of one whose key is compared all is asked for.
pub(crate) struct WithValues<'r, 'm, M>(pub(crate) &'r Records<'m, M>);

impl<M: Medium> Keys for WithValues<'_, '_, M> {
    type Error = Error;

    fn key(&self, position: Position) -> Result<&[u8], Error> {
        self.0.key(position)
    }

    #[inline(always)]
    fn has_key(&self, position: Position, key: &[u8]) -> bool {
        self.0.prefetch_whole(position);
        self.0.has_key(position, key)
    }

    fn prefetch(&self, position: Position) {
        self.0.prefetch(position);
    }
}

/// Records that a search for an absent key compares, each whole: one whose key is damaged may be that key's.
pub(crate) struct Intact<'r, 'm, M>(pub(crate) &'r Records<'m, M>);

impl<M: Medium> Keys for Intact<'_, '_, M> {
    type Error = Error;

    fn key(&self, position: Position) -> Result<&[u8], Error> {
        let item = self.0.read(position)?;
        check_intact(position, &item)?;
        Ok(item.key)
    }

    fn prefetch(&self, position: Position) {
        self.0.prefetch(position);
    }
}

/// Which record it is.
pub(crate) fn witness(position: Position, item: &Item<'_>) -> Witness {
    Witness::of_item(position.word(), item.header.checksum, item.expiry)
}

/// An error unless the record's checksum fits.
pub(crate) fn check_intact(position: Position, item: &Item<'_>) -> Result<(), Error> {
    if item.is_intact() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "a record's checksum does not fit" })
}

pub(crate) fn place_of(position: Position) -> Result<Place, Error> {
    let offset = position.offset().0;
    position.place().ok_or(Error::Corrupt { offset, what: "a record of no size class is named" })
}
