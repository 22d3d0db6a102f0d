//! Checks a store: the region's head, every entry against the item, every item against the checksum, no key twice, and
//! free space against the places in entries.
//!
//! A check stores nothing, so it also works on a read-only store. Writers and the background must not run during a
//! check.

use std::sync::Arc;

use heap::PlaceKind;
use heap::salvage::{Chunk, Head, listed};
use index::Position;
use index::partitioned_hash::Cursor as Place;
use pmem::{Medium, MediumError, Offset};

use crate::item;
use crate::read::check_intact;
use crate::read::places::Places;
use crate::{HiKv, Memory};
use engine::{Check, Damage, Depth, Error};
use items::Item;

/// The state of a check.
struct CheckState {
    place: Place,
    /// Places that entries have named so far.
    named: Places,
    /// Stops the background from moving items: an item that moves would seem to be in two places, or in none.
    _rest: Arc<()>,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Checks one segment; also the region's head before the first one, and free space after the last one.
    pub(crate) fn check_step(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let depth = check.depth();
        let mut state = match check.take_state() {
            Some(state) => state,
            None => self.begin_check(depth, damaged)?,
        };
        // The reaper must not delete an item that was just read.
        let _background = self.keep_background_away();
        let _pin = epoch::pin();
        let mut wrong = Vec::new();
        let is_place = |offset| self.heap.table().check_place(heap::Place { offset, kind: PlaceKind::Segment }).is_ok();
        let CheckState { place, named, .. } = &mut *state;
        *place = self.index.check_segment(
            &self.medium,
            *place,
            &is_place,
            &mut |damage| damaged(Damage { offset: damage.at.0, what: damage.what.into() }),
            &mut |signature, at, position, earlier| {
                check.count_item();
                let checked = self.check_place(at, position, named).and_then(|()| match depth {
                    Depth::Quick => self.check_header(position),
                    Depth::Deep => self.check_item(signature, at, position, earlier),
                });
                wrong.extend(checked.err());
            },
        );
        wrong.into_iter().for_each(&mut *damaged);
        if !state.place.is_done() {
            check.set_state(Some(state));
            return Ok(());
        }
        if let Err(MediumError::Unreadable { offset, .. }) = self.medium.check_lost_ranges() {
            damaged(Damage { offset, what: "a part of the region cannot be read".into() });
        }
        if depth == Depth::Deep && !self.medium.is_writable() && self.heap.is_swept() {
            self.check_unnamed(&mut state.named, damaged)?;
        }
        check.set_state::<CheckState>(None);
        Ok(())
    }

    fn begin_check(&self, depth: Depth, damaged: &mut dyn FnMut(Damage)) -> Result<Box<CheckState>, Error> {
        self.finish_sweep()?;
        let rest = self.compaction.pause();
        self.check_head(depth, damaged)?;
        Ok(Box::new(CheckState { place: Place::default(), named: Places::new(self.medium.len_bytes()), _rest: rest }))
    }

    /// Checks the superblock's copies, the head's words, chunk headers, and the clean image.
    fn check_head(&self, depth: Depth, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let mut on_damage = |at: Offset, what: &'static str| damaged(Damage { offset: at.0, what: what.into() });
        Head::read(&self.medium, &mut on_damage)?.chunks(&self.medium, &mut on_damage, &mut |_| {});
        let image = self.heap.image().named().filter(|_| depth == Depth::Deep);
        if let Some((image, what)) = image.and_then(|image| Some((image, self.image.damage(&self.medium)?))) {
            damaged(Damage { offset: image.place.offset.0, what: what.into() });
        }
        Ok(())
    }

    /// Checks that the position names a valid place which no other entry names and which is not free.
    fn check_place(&self, at: Offset, position: Position, named: &mut Places) -> Result<(), Damage> {
        let damage = |what: String| Damage { offset: at.0, what };
        let Some(place) = position.place() else { return Err(damage("the entry names no size class".into())) };
        self.heap
            .table()
            .check_place(place)
            .map_err(|wrong| damage(format!("the entry names an invalid place: {wrong}")))?;
        let offset = place.offset.0;
        if !named.meet(place.offset) {
            return Err(damage(format!("two entries name the item at {offset:#x}")));
        }
        if self.heap.table().is_free(place) {
            return Err(damage(format!("the entry names the item at {offset:#x}, whose place is free")));
        }
        Ok(())
    }

    fn check_header(&self, position: Position) -> Result<(), Damage> {
        // SAFETY: the position comes from the index, and the caller is pinned.
        let item = unsafe { item::read(&self.medium, position) };
        item.map(drop).map_err(|error| damage_to_item(position, &error))
    }

    fn check_item(&self, signature: u64, at: Offset, position: Position, earlier: &[Position]) -> Result<(), Damage> {
        let damage = |what: &str| Damage { offset: at.0, what: what.into() };
        let item = self.whole_item(position).map_err(|error| damage_to_item(position, &error))?;
        if !item.expiry.is_never() && !self.may_expire() {
            let what = "an item expires in a store without the feature flag for expiry".into();
            return Err(Damage { offset: position.offset().0, what });
        }
        if self.hasher.signature(item.key) != signature {
            return Err(damage("an entry's signature is not that of its key"));
        }
        if item.header.epoch > self.stamp() {
            return Err(damage("an item is of a later snapshot epoch than the store"));
        }
        let same_key = |&other: &Position| self.whole_item(other).is_ok_and(|other| other.key == item.key);
        if earlier.iter().any(same_key) {
            return Err(damage("a key has two entries"));
        }
        let found = self.find(signature, item.key).ok().flatten();
        if found.is_none_or(|(found, _)| found.item() != position.item()) {
            return Err(damage("a lookup of the entry's key does not find the entry"));
        }
        Ok(())
    }

    fn whole_item(&self, position: Position) -> Result<Item<'_>, Error> {
        // SAFETY: the position comes from the index, and the caller is pinned.
        let item = unsafe { item::read(&self.medium, position) }?;
        check_intact(&item, position)?;
        Ok(item)
    }

    /// Reports places that are in use in the clean image but that no entry names. The store is read-only, so no thread
    /// reserves or frees space.
    fn check_unnamed(&self, named: &mut Places, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let (mut words, mut chunks) = (Vec::new(), Vec::<Chunk>::new());
        self.heap.sweep().free_words(&mut |word| words.push(word));
        Head::read(&self.medium, &mut |_, _| {})?.chunks(&self.medium, &mut |_, _| {}, &mut |chunk| chunks.push(chunk));
        let image = self.heap.image().named().map(|image| image.place.offset);
        for (unit, free) in listed(&words) {
            let Ok(chunk) = chunks.binary_search_by_key(&unit, |chunk| chunk.unit) else { continue };
            let chunk = chunks[chunk];
            let in_use = chunk.item_places().enumerate().filter(|&(slot, _)| chunk.is_in_use(free, slot));
            for (_, at) in in_use.filter(|&(_, at)| Some(at) != image && named.meet(at)) {
                damaged(Damage { offset: at.0, what: "a place is in use that no entry names".into() });
            }
        }
        Ok(())
    }
}

fn damage_to_item(position: Position, error: &Error) -> Damage {
    let offset = position.offset().0;
    match error {
        // The damage already holds the offset.
        Error::Corrupt { offset: at, what } if *at == offset => Damage { offset, what: (*what).into() },
        other => Damage { offset, what: other.to_string() },
    }
}
