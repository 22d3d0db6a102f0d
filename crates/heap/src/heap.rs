//! The heap: a region, and a record in DRAM of its free space.

use pmem::{Dram, Medium, Offset};

use crate::canary;
use crate::chunks::Chunks;
use crate::class::Class;
use crate::evacuation::Evacuation;
use crate::format::Parameters;
use crate::header::ChunkHeader;
use crate::image::{Image, ImageWord};
use crate::lane::Lanes;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, UNIT_BYTES, unit_start};
use crate::open::may_lack_durability;
use crate::place::{Place, PlaceKind, extent_units};
use crate::prepare::Preparation;
use crate::region::Region;
use crate::reservation::Reservation;
use crate::slot_kind::SlotKind;
use crate::stats::HeapStats;
use crate::supply::Supply;
use crate::sweep::{Progress, Sweep};
use crate::table::{Table, Tag};
use crate::{EngineNumber, HeapError, state};

/// A region's allocator. Threads reserve and free concurrently.
///
/// The caller passes the medium that the heap was opened on to every method that takes one.
pub struct Heap<D: Dram> {
    lanes: Lanes,
    chunks: Chunks<D>,
    sweep: Progress,
    image: Image,
    preparation: Preparation,
}

impl<D: Dram> Heap<D> {
    /// Begins a new region of an engine on a fresh medium. Space can be reserved immediately, but the region is valid
    /// only once [`Region::finish_format`] has returned.
    ///
    /// # Errors
    /// [`HeapError::AlreadyFormatted`] and any error of [`Region::probe`]; [`HeapError::Parameter`];
    /// [`HeapError::Medium`] if the medium has no space; [`HeapError::NoDram`].
    pub fn format<M: Medium>(
        medium: &M,
        engine: EngineNumber,
        parameters: &Parameters,
        dram: D,
    ) -> Result<Heap<D>, HeapError> {
        let region = Region::format(medium, engine, parameters)?;
        let heap = Heap::new(region, FIRST_CHUNK_UNIT, ImageWord::default(), dram)?;
        heap.sweep().finish(medium);
        Ok(heap)
    }

    /// Opens the region of the engine `wanted` and checks its superblock, its state words and the header of every
    /// chunk. A bad copy of the superblock is rewritten. On a read-only medium nothing is stored.
    ///
    /// An earlier process may have been killed between a store and its flush. Its stores are visible and are relied
    /// on from now on, so the region's head and every chunk's header are made durable as they are.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] and other errors of a damaged or unsupported region; [`HeapError::WrongEngine`];
    /// [`HeapError::Medium`] if holes in space that is in use cannot be filled; [`HeapError::NoDram`].
    pub fn open<M: Medium>(medium: &M, wanted: EngineNumber, dram: D) -> Result<Heap<D>, HeapError> {
        let region = Region::open(medium, wanted)?;
        let mark = state::load_mark(medium, region.len_bytes())?;
        let image = ImageWord::load(medium, region.superblock())?;
        let heap = Heap::new(region, mark, image, dram)?;
        heap.chunks.walk(medium)?;
        if may_lack_durability(medium) {
            medium.flush(Offset(0).span(UNIT_BYTES));
            medium.order();
        }
        if medium.breaks(canary::PUT_BELOW_MARK) {
            heap.sweep().finish(medium);
        }
        Ok(heap)
    }

    fn new(region: Region, mark: u32, image: ImageWord, dram: D) -> Result<Heap<D>, HeapError> {
        let chunks = Chunks::new(region, mark, dram)?;
        Ok(Heap {
            lanes: Lanes::new(chunks.allocator())?,
            chunks,
            sweep: Progress::new(mark),
            image: Image::new(image),
            preparation: Preparation::default(),
        })
    }

    /// Returns the region: its superblock, its features and its state words.
    #[inline(always)]
    pub fn region(&self) -> &Region {
        self.chunks.region()
    }

    /// Returns the table that finds places.
    #[inline(always)]
    pub fn table(&self) -> &Table {
        self.chunks.table()
    }

    /// Returns the chunks and the space between them.
    #[inline(always)]
    pub fn chunks(&self) -> &Chunks<D> {
        &self.chunks
    }

    /// Returns the lengths of the used and the free space.
    #[inline(always)]
    pub fn supply(&self) -> &Supply {
        self.chunks.supply()
    }

    /// Returns the sweep, which finds the free space of an opened region.
    #[inline(always)]
    pub fn sweep(&self) -> Sweep<'_, D> {
        Sweep::of(&self.sweep, &self.chunks)
    }

    /// Returns true once all free space is known.
    #[inline(always)]
    pub fn is_swept(&self) -> bool {
        self.sweep.is_swept()
    }

    /// Returns the clean image.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Gives up the image, if one is named, and frees its extent. Ordered before anything that follows.
    pub fn forget_image<M: Medium>(&self, medium: &M) {
        self.image.forget(&self.chunks, medium);
    }

    /// Returns the means to empty sparse chunks.
    pub fn evacuation(&self) -> Evacuation<'_, D> {
        Evacuation { chunks: &self.chunks, lanes: &self.lanes }
    }

    /// Counts all chunks.
    pub fn stats(&self) -> HeapStats {
        HeapStats::of(&self.chunks, &self.lanes, self.image.named().map(|image| image.place.offset))
    }

    /// Returns true while a writer may soon run out of prepared space.
    #[inline(always)]
    pub fn runs_low(&self) -> bool {
        self.chunks.supply().runs_low()
    }

    /// Returns the spare space that [`Heap::prepare`] should be called for.
    pub fn ahead_bytes(&self) -> u64 {
        self.chunks.supply().ahead_bytes(self.region())
    }

    /// Takes one step towards `ahead_bytes` of spare space whose pages do not fault: up to 2 MiB of pages, or growth
    /// once all existing pages are prepared. Returns true while there is more to do. Returns false if the region
    /// cannot grow (not tried again before a writer grows it) or if holes above the mark cannot be filled, for any
    /// reason. Writers get the error themselves, and other background work may free space.
    pub fn prepare<M: Medium>(&self, medium: &M, ahead_bytes: u64) -> bool {
        self.preparation.step(&self.chunks, medium, ahead_bytes)
    }

    /// Returns the space of one free run to the file system: the first run at or behind `from` that has any. `from`
    /// is 0 for the first call. Returns the unit to continue at and the number of bytes that the medium took. `None`
    /// if there is no such run or the sweep has not ended.
    pub fn discard_free_run<M: Medium>(&self, medium: &M, from: u32) -> Option<(u32, u64)> {
        if self.is_swept() { self.chunks.discard_free_run(medium, from) } else { None }
    }

    /// Reserves space for `len_bytes`: a slot, or an extent if no class is that large. If the region is full and has
    /// no such slot left, an item that needs a slot of more than 32 KiB gets an extent, and one that needs a slot of
    /// more than 4 KiB gets a slot of up to twice the size. Threads that prefer different lanes do not contend.
    ///
    /// # Errors
    /// [`HeapError::Medium`] if the region cannot grow; while the sweep runs, space may become free later.
    /// [`HeapError::NoDram`]; [`HeapError::TooLong`].
    #[inline(always)]
    pub fn reserve<M: Medium>(&self, medium: &M, len_bytes: u64, lane: usize) -> Result<Reservation<'_, D>, HeapError> {
        if let Some(class) = Class::for_bytes(len_bytes)
            && let Some(offset) = self.lanes.slot_at_hand(medium, SlotKind::of_class(class), lane)
        {
            return Ok(Reservation::new(&self.chunks, Place { offset, kind: PlaceKind::Slot(class) }));
        }
        self.reserve_what_is_not_at_hand(medium, len_bytes, lane)
    }

    /// As [`Heap::reserve`].
    #[cold]
    #[inline(never)]
    fn reserve_what_is_not_at_hand<M: Medium>(
        &self,
        medium: &M,
        len_bytes: u64,
        lane: usize,
    ) -> Result<Reservation<'_, D>, HeapError> {
        let Some(class) = Class::for_bytes(len_bytes) else {
            return self.reserve_extent(medium, len_bytes);
        };
        match self.lanes.take_slot(&self.chunks, medium, SlotKind::of_class(class), lane) {
            Ok(offset) => Ok(Reservation::new(&self.chunks, Place { offset, kind: PlaceKind::Slot(class) })),
            Err(error) if error.is_full() => self.reserve_in_full_region(medium, len_bytes, (class, lane)).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Reserves space for an item of `class` where no chunk of such slots has a free one and none can be made. A run
    /// that is too short for a chunk of large slots may fit one of them. Otherwise the free space is in chunks of
    /// other classes, of which those with slots of at most twice the size serve.
    fn reserve_in_full_region<M: Medium>(
        &self,
        medium: &M,
        len_bytes: u64,
        (class, lane): (Class, usize),
    ) -> Option<Reservation<'_, D>> {
        let extent = SlotKind::of_class(class).is_large().then(|| self.reserve_extent(medium, len_bytes));
        if let Some(Ok(reservation)) = extent {
            return Some(reservation);
        }
        class.larger().find_map(|class| {
            let offset = self.lanes.take_free_slot(&self.chunks, medium, SlotKind::of_class(class), lane)?;
            Some(Reservation::new(&self.chunks, Place { offset, kind: PlaceKind::Slot(class) }))
        })
    }

    /// Turns a reserved place that nothing refers to into a reservation again, to be filled. Dropping it frees the
    /// place.
    pub fn hold(&self, place: Place) -> Reservation<'_, D> {
        Reservation::new(&self.chunks, place)
    }

    /// Reserves slots for items of `class` and returns their number: at least one, and at most the length of
    /// `offsets`. More than one only if a lane has them claimed. The caller owns each slot and publishes it or
    /// cancels it ([`Heap::cancel`]).
    ///
    /// # Errors
    /// As for [`Heap::reserve`]; no slot is then reserved.
    ///
    /// # Panics
    /// If `offsets` is empty.
    pub fn reserve_slots<M: Medium>(
        &self,
        medium: &M,
        class: Class,
        lane: usize,
        offsets: &mut [Offset],
    ) -> Result<usize, HeapError> {
        let (slot_kind, (first, rest)) = (SlotKind::of_class(class), offsets.split_first_mut().expect("room for one"));
        *first = self.lanes.take_slot(&self.chunks, medium, slot_kind, lane)?;
        Ok(1 + self.lanes.take_claimed(slot_kind, lane, rest))
    }

    /// Reserves a segment. Its first line is zero if the segment was never used; otherwise it holds old contents.
    ///
    /// # Errors
    /// As for [`Heap::reserve`].
    pub fn reserve_segment<M: Medium>(&self, medium: &M) -> Result<Reservation<'_, D>, HeapError> {
        let offset = self.lanes.take_slot(&self.chunks, medium, SlotKind::SEGMENTS, 0)?;
        Ok(Reservation::new(&self.chunks, Place { offset, kind: PlaceKind::Segment }))
    }

    /// Reserves an extent for `len_bytes`, however few.
    ///
    /// # Errors
    /// As for [`Heap::reserve`].
    #[cold]
    pub fn reserve_extent<M: Medium>(&self, medium: &M, len_bytes: u64) -> Result<Reservation<'_, D>, HeapError> {
        let units = extent_units(len_bytes)?;
        let unit =
            self.lanes.gathering(&self.chunks, medium, || self.chunks.new_chunk(medium, ChunkHeader::extent(units)))?;
        self.chunks.table().at(unit).set(Tag::EXTENT, units);
        let offset = unit_start(unit).plus(CHUNK_HEADER_BYTES);
        Ok(Reservation::new(&self.chunks, Place { offset, kind: PlaceKind::Extent }))
    }

    /// Frees a place that no reader can reach any more and whose removal from the index is durable.
    ///
    /// While the place's chunk is unswept, the free is only recorded; the place is freed when the sweep ends. A place
    /// that is already free, or that is not valid, is left alone.
    #[inline]
    pub fn free<M: Medium>(&self, medium: &M, place: Place) {
        self.chunks.free(medium, place);
    }

    /// Frees a place that was reserved and that nothing refers to. Nothing is stored. An extent is part of a free run
    /// in DRAM and remains an extent on the medium until the run is carved, joined or swept. A chunk of slots becomes
    /// a free run when the region is full (`gather`).
    pub fn cancel(&self, place: Place) {
        self.chunks.cancel(place);
    }

    /// Turns every empty chunk of slots into a free run. The caller holds no lane.
    pub fn gather<M: Medium>(&self, medium: &M) {
        self.lanes.gather(&self.chunks, medium);
    }

    /// Makes every lane give up its chunk and its claimed slots, so that the chunks' records include every free slot.
    pub fn empty_lanes<M: Medium>(&self, medium: &M) {
        self.lanes.empty(&self.chunks, medium);
    }
}

impl<D: Dram> Drop for Heap<D> {
    fn drop(&mut self) {
        // SAFETY: the heap is being dropped, and its lanes are not used afterwards.
        unsafe { self.lanes.deallocate(self.chunks.allocator()) };
    }
}
