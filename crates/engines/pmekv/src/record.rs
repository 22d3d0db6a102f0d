//! Records: key and value in one piece, as `items` writes them.

use engine::{Error, Witness};
use heap::{Place, PlaceKind};
use index::Position;
use index::bplus_tree::Keys;
use items::{Item, Plain};
use pmem::Medium;

/// The records of a store, for a thread that was pinned before it found the positions, or that keeps records from being
/// freed in another way.
pub(crate) struct Records<'m, M>(pub(crate) &'m M);

impl<'m, M: Medium> Records<'m, M> {
    /// Reads the record at `position`, without comparing its checksum.
    pub(crate) fn read(&self, position: Position) -> Result<Item<'m>, Error> {
        let capacity_bytes = match place_of(position)?.kind {
            PlaceKind::Slot(class) => class.bytes(),
            _ => self.0.len_bytes().saturating_sub(position.offset().0),
        };
        // SAFETY: as `Records` requires, the record is not freed, and no thread stores to it.
        Ok(unsafe { Item::read(self.0, position.offset(), capacity_bytes) }?)
    }

    /// Reads like [`Records::read`] a record that is in a slot and does not expire, as most do. `None` means unsure.
    #[inline(always)]
    pub(crate) fn plain(&self, position: Position) -> Option<Plain<'m>> {
        Plain::in_slot(self.slot_bytes(position)?)
    }

    /// Returns the slot of a record; `None` means unsure.
    #[inline(always)]
    fn slot_bytes(&self, position: Position) -> Option<&'m [u8]> {
        let slot = position.offset().span(position.slot_bytes()?);
        // SAFETY: as `Records` requires; no thread stores to the bytes after the record in its slot.
        unsafe { self.0.bytes(slot) }.ok()
    }
}

/// A record's header and a key of 16 bytes end here; they may span two lines.
const HEAD_BYTES: u64 = 32;

impl<M: Medium> Records<'_, M> {
    /// Prefetches a record's header and a short key. Any position is allowed.
    #[inline(always)]
    pub(crate) fn prefetch_head(&self, position: Position) {
        self.0.prefetch_line(position.offset());
        self.0.prefetch_line(position.offset().plus(HEAD_BYTES - 1));
    }

    /// Prefetches a small record, or the beginning of a long one. Any position is allowed.
    #[inline(always)]
    pub(crate) fn prefetch_whole(&self, position: Position) {
        items::prefetch(self.0, position.offset(), position.slot_bytes());
    }

    /// As [`Records::prefetch_whole`], for one of several records that are read after each other.
    #[inline(always)]
    pub(crate) fn request_whole(&self, position: Position) {
        items::request(self.0, position.offset(), position.slot_bytes());
    }

    /// Returns the positions, for a caller that reads each record before it takes the next; calls `near` some positions
    /// ahead, to prefetch them.
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
        self.slot_bytes(position).is_some_and(|slot| Plain::of_key(slot, key).is_some())
    }

    #[inline(always)]
    fn prefetch(&self, position: Position) {
        self.0.prefetch_line(position.offset());
    }
}

/// Records whose values will be read: comparing a key prefetches the whole record.
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

/// Records that are verified completely when a lookup of an absent key compares them: a record with a damaged key may
/// be that key's.
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

/// Returns the witness that identifies the record.
pub(crate) fn witness(position: Position, item: &Item<'_>) -> Witness {
    Witness::of_item(position.word(), item.header.checksum, item.expiry)
}

/// Returns an error unless the record's checksum matches.
pub(crate) fn check_intact(position: Position, item: &Item<'_>) -> Result<(), Error> {
    if item.is_intact() {
        return Ok(());
    }
    Err(Error::Corrupt { offset: position.offset().0, what: "a record's checksum does not fit" })
}

pub(crate) fn place_of(position: Position) -> Result<Place, Error> {
    let offset = position.offset().0;
    position.place().ok_or(Error::Corrupt { offset, what: "a record's place has no size class" })
}
