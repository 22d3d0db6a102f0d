//! Walks over all keys, part by part. A cursor's number is the index's own.

use index::Position;
use index::partitioned_hash::Cursor as Place;
use index::partitioned_hash::layout::SEGMENT_ENTRY_COUNT;
use items::{Plain, prefetch_ahead};
use pmem::Medium;

use engine::{Cursor, Error, Expiry, OnItem};

use crate::read::check_intact;
use crate::{HiKv, Memory, item};

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

/// Signatures and positions of one part of the index. Each pair is consistent.
pub(crate) type Entries = Vec<(u64, Position)>;

impl<M: Medium, D: Memory> HiKv<M, D> {
    pub(crate) fn walk_part(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let Some(place) = place_of(cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let (entries, next) = self.entries_at(place)?;
        self.each_ahead(&entries, |signature, position| match self.whole_plain(signature, position) {
            Some(item) => {
                each(item.key(), item.value(), Expiry::NEVER);
                Ok(())
            }
            None => self.visit_any(signature, position, each),
        })?;
        Ok(cursor_at(next))
    }

    /// Returns the entries of the part at `place`, and the next place. The caller is pinned while it uses the entries.
    pub(crate) fn entries_at(&self, place: Place) -> Result<(Entries, Place), Error> {
        let mut entries = Vec::with_capacity(SEGMENT_ENTRY_COUNT as usize);
        let next = self.index.visit(&self.medium, place, |signature, position| {
            entries.push((signature, position));
            Ok::<_, Error>(())
        })?;
        Ok((entries, next))
    }

    /// Calls `each` for every entry, and prefetches items ahead.
    #[inline(always)]
    pub(crate) fn each_ahead(
        &self,
        entries: &[(u64, Position)],
        mut each: impl FnMut(u64, Position) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut entries = prefetch_ahead(entries, |&(_, position)| item::prefetch(&self.medium, position));
        entries.try_for_each(|&(signature, position)| each(signature, position))
    }

    /// Returns the item if it is in a slot, does not expire, is intact, and has this signature. After `None` the caller
    /// uses [`item::read`]. The caller has been pinned since before it met the position.
    #[inline(always)]
    pub(crate) fn whole_plain(&self, signature: u64, position: Position) -> Option<Plain<'_>> {
        // SAFETY: the caller's promise.
        let item = unsafe { item::read_plain(&self.medium, position) }?;
        (item.is_intact() && self.hasher.signature(item.key()) == signature).then_some(item)
    }

    #[inline(never)]
    fn visit_any(&self, signature: u64, position: Position, each: &mut OnItem<'_>) -> Result<(), Error> {
        // SAFETY: pinned since before the walk's step.
        let item = unsafe { item::read(&self.medium, position) }?;
        check_intact(&item, position)?;
        self.check_signature(signature, &item, position)?;
        if !self.clock.is_past(item.expiry) {
            each(item.key, item.value, item.expiry);
        }
        Ok(())
    }
}
