//! Walks over all keys, part by part: a cursor's number is the index's own.

use index::partitioned_hash::Cursor as Place;
use pmem::Medium;

use engine::{Cursor, Error, Show};

use crate::read::whole;
use crate::{HiKv, Memory, item};

/// Where the index's walk goes on; `None` at the end.
pub(crate) fn place_of(cursor: &Cursor) -> Result<Option<Place>, Error> {
    match cursor {
        Cursor::Start => Ok(Some(Place::default())),
        Cursor::Number(number) => Ok(Some(Place::from_number(*number))),
        Cursor::After(_) => Err(Error::Unsupported { engine: "hikv", what: "walks that go on behind a key" }),
        Cursor::End => Ok(None),
    }
}

/// The cursor of the index's place.
pub(crate) fn cursor_at(place: Place) -> Cursor {
    if place.is_done() { Cursor::End } else { Cursor::Number(place.number()) }
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    pub(crate) fn walk_part(&self, cursor: &Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        let Some(place) = place_of(cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let ahead = |position| item::prefetch(&self.medium, position);
        let next = self.index.visit_ahead(&self.medium, place, ahead, |signature, position| {
            // SAFETY: pinned since before the walk's step.
            let item = unsafe { item::read(&self.medium, position) }?;
            whole(&item, position)?;
            self.findable(signature, &item, position)?;
            if !self.clock.is_past(item.expiry) {
                each(item.key, item.value, item.expiry);
            }
            Ok::<_, Error>(())
        })?;
        Ok(cursor_at(next))
    }
}
