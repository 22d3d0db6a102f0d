//! Walks over all keys, part by part. A cursor's number is the index's own.

use index::Position;
use index::partitioned_hash::Cursor as Place;
use index::partitioned_hash::layout::SEGMENT_ENTRY_COUNT;
use items::{Plain, prefetch_ahead};
use pmem::Medium;

use engine::{Cursor, Error, Expiry, OnItem};

use super::{Reader, check_intact};
use crate::item;

/// Returns the position of the index's walk; `None` at the end.
pub(crate) fn place_of(cursor: &Cursor) -> Result<Option<Place>, Error> {
    match cursor {
        Cursor::Start => Ok(Some(Place::default())),
        Cursor::Number(number) => Ok(Some(Place::from_number(*number))),
        Cursor::After(_) => Err(Error::Unsupported { engine: "hikv", what: "walks that continue after a key" }),
        Cursor::End => Ok(None),
    }
}

/// Returns the cursor for a position of the index's walk.
pub(crate) fn cursor_at(place: Place) -> Cursor {
    if place.is_done() { Cursor::End } else { Cursor::Number(place.number()) }
}

/// One part of a walk: signatures and positions of entries, each pair consistent. The thread is pinned while it has the
/// part.
pub(crate) struct Part<'a, M> {
    reader: &'a Reader<M>,
    entries: Vec<(u64, Position)>,
    next: Place,
}

impl<'a, M: Medium> Part<'a, M> {
    /// Reads the entries at `place`.
    pub(crate) fn at(reader: &'a Reader<M>, place: Place) -> Result<Part<'a, M>, Error> {
        let mut entries = Vec::with_capacity(SEGMENT_ENTRY_COUNT as usize);
        let next = reader.index().visit(reader.medium(), place, |signature, position| {
            entries.push((signature, position));
            Ok::<_, Error>(())
        })?;
        Ok(Part { reader, entries, next })
    }

    /// Returns the place after the part.
    pub(crate) fn next(&self) -> Place {
        self.next
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Calls `each` for every entry, and prefetches items ahead.
    #[inline(always)]
    pub(crate) fn each_entry(&self, mut each: impl FnMut(u64, Position) -> Result<(), Error>) -> Result<(), Error> {
        let medium = self.reader.medium();
        let mut entries = prefetch_ahead(&self.entries, |&(_, position)| item::request(medium, position));
        entries.try_for_each(|&(signature, position)| each(signature, position))
    }

    /// Calls `each` for every item that has not expired.
    pub(crate) fn each_item(&self, each: &mut OnItem<'_>) -> Result<(), Error> {
        self.each_entry(|signature, position| match self.whole_plain(signature, position) {
            Some(item) => {
                each(item.key(), item.value(), Expiry::NEVER);
                Ok(())
            }
            None => self.visit_any(signature, position, each),
        })
    }

    /// Calls `each` for the key of every item, also of those that have expired.
    pub(crate) fn each_key(&self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.each_entry(|signature, position| {
            // SAFETY: the caller has been pinned since before it met the position.
            let item = unsafe { item::read(self.reader.medium(), position) }?;
            self.reader.check_signature(signature, &item, position)?;
            each(item.key);
            Ok(())
        })
    }

    /// Returns the item if it is in a slot, does not expire, is intact, and has this signature. After `None` the caller
    /// uses [`item::read`]. The position is one of the part's.
    #[inline(always)]
    pub(crate) fn whole_plain(&self, signature: u64, position: Position) -> Option<Plain<'a>> {
        // SAFETY: the caller has been pinned since before it met the position.
        let item = unsafe { item::read_plain(self.reader.medium(), position) }?;
        (item.is_intact() && self.reader.signature(item.key()) == signature).then_some(item)
    }

    #[inline(never)]
    fn visit_any(&self, signature: u64, position: Position, each: &mut OnItem<'_>) -> Result<(), Error> {
        // SAFETY: pinned since before the walk's step.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        check_intact(&item, position)?;
        self.reader.check_signature(signature, &item, position)?;
        if !self.reader.clock().is_past(item.expiry) {
            each(item.key, item.value, item.expiry);
        }
        Ok(())
    }
}
