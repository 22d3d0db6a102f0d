//! Checks a store: the region's head, every entry against the item, every item against the checksum, no key twice, and
//! free space against the places in entries.
//!
//! A check stores nothing, so it also works on a read-only store. Writers and the background must not run during a
//! check.

use std::sync::Arc;

use heap::salvage::{Chunk, Head, listed};
use heap::{FEATURE_EXPIRY, Heap, PlaceKind};
use index::Position;
use index::partitioned_hash::Cursor as Place;
use pmem::{Dram, Medium, MediumError, Offset};

use crate::item;
use crate::memory::Memory;
use crate::places::Places;
use crate::read::{Reader, check_intact};
use crate::write::Writer;
use engine::{Check, Compaction, Damage, Depth, Error};
use items::Item;

/// The state of a check.
struct CheckState {
    place: Place,
    /// Places that entries have named so far.
    named: Places,
    /// Stops the background from moving items: an item that moves would seem to be in two places, or in none.
    _rest: Arc<()>,
}

/// Checks one segment of the index; also the region's head before the first one, and free space after the last one.
pub(crate) fn step<M: Medium, D: Memory>(
    writer: &Writer<M, D>,
    compaction: &Compaction<Place>,
    check: &mut Check,
    damaged: &mut dyn FnMut(Damage),
) -> Result<(), Error> {
    let (depth, medium, heap) = (check.depth(), writer.reader().medium(), writer.space().heap());
    let mut state = match check.take_state() {
        Some(state) => state,
        None => begin(writer, compaction, depth, damaged)?,
    };
    // The reaper must not delete an item that was just read.
    let _background = writer.space().pause_background();
    let _pin = epoch::pin();
    let mut wrong = Vec::new();
    let is_place = |offset| heap.table().check_place(heap::Place { offset, kind: PlaceKind::Segment }).is_ok();
    let CheckState { place, named, .. } = &mut *state;
    let epoch = writer.snapshots().stamp();
    let mut checker = Checker { reader: writer.reader(), heap, epoch, named };
    *place = writer.reader().index().check_segment(
        medium,
        *place,
        &is_place,
        &mut |damage| damaged(Damage { offset: damage.at.0, what: damage.what.into() }),
        &mut |signature, at, position, earlier| {
            check.count_item();
            let checked = checker.place(at, position).and_then(|()| match depth {
                Depth::Quick => checker.header(position),
                Depth::Deep => checker.item(signature, at, position, earlier),
            });
            wrong.extend(checked.err());
        },
    );
    wrong.into_iter().for_each(&mut *damaged);
    if !place.is_done() {
        check.set_state(Some(state));
        return Ok(());
    }
    if let Err(MediumError::Unreadable { offset, .. }) = medium.check_lost_ranges() {
        damaged(Damage { offset, what: "a part of the region cannot be read".into() });
    }
    if depth == Depth::Deep && !medium.is_writable() && heap.is_swept() {
        checker.unnamed(damaged)?;
    }
    check.set_state::<CheckState>(None);
    Ok(())
}

fn begin<M: Medium, D: Memory>(
    writer: &Writer<M, D>,
    compaction: &Compaction<Place>,
    depth: Depth,
    damaged: &mut dyn FnMut(Damage),
) -> Result<Box<CheckState>, Error> {
    writer.space().finish_sweep(writer.reader())?;
    let rest = compaction.pause();
    check_head(writer, depth, damaged)?;
    let named = Places::new(writer.reader().medium().len_bytes());
    Ok(Box::new(CheckState { place: Place::default(), named, _rest: rest }))
}

/// Checks the superblock's copies, the head's words, chunk headers, and the clean image.
fn check_head<M: Medium, D: Memory>(
    writer: &Writer<M, D>,
    depth: Depth,
    damaged: &mut dyn FnMut(Damage),
) -> Result<(), Error> {
    let medium = writer.reader().medium();
    let mut on_damage = |at: Offset, what: &'static str| damaged(Damage { offset: at.0, what: what.into() });
    Head::read(medium, &mut on_damage)?.chunks(medium, &mut on_damage, &mut |_| {});
    let image = writer.space().heap().image().named().filter(|_| depth == Depth::Deep);
    if let Some((image, what)) = image.and_then(|image| Some((image, writer.image().damage(medium)?))) {
        damaged(Damage { offset: image.place.offset.0, what: what.into() });
    }
    Ok(())
}

/// Checks entries and their items.
struct Checker<'a, M, D: Dram> {
    reader: &'a Reader<M>,
    heap: &'a Heap<D>,
    /// The store's snapshot epoch.
    epoch: u32,
    /// Places that entries have named so far.
    named: &'a mut Places,
}

impl<'a, M: Medium, D: Dram> Checker<'a, M, D> {
    /// Checks that the position names a valid place which no other entry names and which is not free.
    fn place(&mut self, at: Offset, position: Position) -> Result<(), Damage> {
        let damage = |what: String| Damage { offset: at.0, what };
        let Some(place) = position.place() else { return Err(damage("the entry names no size class".into())) };
        self.heap
            .table()
            .check_place(place)
            .map_err(|wrong| damage(format!("the entry names an invalid place: {wrong}")))?;
        let offset = place.offset.0;
        if !self.named.meet(place.offset) {
            return Err(damage(format!("two entries name the item at {offset:#x}")));
        }
        if self.heap.table().is_free(place) {
            return Err(damage(format!("the entry names the item at {offset:#x}, whose place is free")));
        }
        Ok(())
    }

    fn header(&self, position: Position) -> Result<(), Damage> {
        // SAFETY: the position comes from the index, and the caller is pinned.
        let item = unsafe { item::read(self.reader.medium(), position) };
        item.map(drop).map_err(|error| damage_to_item(position, &error))
    }

    fn item(&self, signature: u64, at: Offset, position: Position, earlier: &[Position]) -> Result<(), Damage> {
        let damage = |what: &str| Damage { offset: at.0, what: what.into() };
        let item = self.whole_item(position).map_err(|error| damage_to_item(position, &error))?;
        if !item.expiry.is_never() && !self.heap.region().has_features(FEATURE_EXPIRY) {
            let what = "an item expires in a store without the feature flag for expiry".into();
            return Err(Damage { offset: position.offset().0, what });
        }
        if self.reader.signature(item.key) != signature {
            return Err(damage("an entry's signature is not that of its key"));
        }
        if item.header.epoch > self.epoch {
            return Err(damage("an item is of a later snapshot epoch than the store"));
        }
        let same_key = |&other: &Position| self.whole_item(other).is_ok_and(|other| other.key == item.key);
        if earlier.iter().any(same_key) {
            return Err(damage("a key has two entries"));
        }
        let found = self.reader.find(signature, item.key).ok().flatten();
        if found.is_none_or(|(found, _)| found.item() != position.item()) {
            return Err(damage("a lookup of the entry's key does not find the entry"));
        }
        Ok(())
    }

    fn whole_item(&self, position: Position) -> Result<Item<'a>, Error> {
        // SAFETY: the position comes from the index, and the caller is pinned.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        check_intact(&item, position)?;
        Ok(item)
    }

    /// Reports places that are in use in the clean image but that no entry names. The store is read-only, so no thread
    /// reserves or frees space.
    fn unnamed(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let (mut words, mut chunks) = (Vec::new(), Vec::<Chunk>::new());
        self.heap.sweep().free_words(&mut |word| words.push(word));
        Head::read(self.reader.medium(), &mut |_, _| {})?
            .chunks(self.reader.medium(), &mut |_, _| {}, &mut |chunk| chunks.push(chunk));
        let image = self.heap.image().named().map(|image| image.place.offset);
        for (unit, free) in listed(&words) {
            let Ok(chunk) = chunks.binary_search_by_key(&unit, |chunk| chunk.unit) else { continue };
            let chunk = chunks[chunk];
            let in_use = chunk.item_places().enumerate().filter(|&(slot, _)| chunk.is_in_use(free, slot));
            for (_, at) in in_use.filter(|&(_, at)| Some(at) != image && self.named.meet(at)) {
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
