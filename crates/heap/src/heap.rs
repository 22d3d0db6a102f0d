//! The heap: a region, and a record in DRAM of its free space.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pmem::{Dram, Medium, Offset};

use crate::ahead::HeadersAhead;
use crate::canary;
use crate::class::Class;
use crate::dram_allocator::DramAllocator;
use crate::format::Parameters;
use crate::free::extent_units;
use crate::header::{ChunkHeader, ChunkKind};
use crate::holes::Backer;
use crate::image::ImageWord;
use crate::lane::Lanes;
use crate::layout::{CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, SNAPSHOT_EPOCH, UNIT_BYTES, unit_start};
use crate::lock::Spin;
use crate::place::{Place, PlaceKind, Reservation};
use crate::prepare::Pace;
use crate::region::Region;
use crate::slab::State;
use crate::slot_kind::SlotKind;
use crate::space::{Figures, Space};
use crate::superblock::Superblock;
use crate::table::{Table, Tag};
use crate::{EngineNumber, HeapError, state};

/// A region's allocator. Threads reserve and free concurrently.
///
/// The caller passes the medium that the heap was opened on to every method that takes one.
pub struct Heap<D: Dram> {
    pub(crate) region: Region,
    pub(crate) lanes: Lanes,
    pub(crate) space: Spin<Space>,
    pub(crate) figures: Figures,
    /// See `prepare.rs`.
    pub(crate) runs_low: AtomicBool,
    pub(crate) table: Table,
    /// The mark at the time the heap was opened: chunks below it are unswept until the sweep ends.
    pub(crate) unswept_past: u32,
    pub(crate) is_sweep_ending: AtomicBool,
    pub(crate) is_swept: AtomicBool,
    /// The caller keeps threads that name an image apart from threads that give one up.
    pub(crate) image: Spin<ImageWord>,
    /// Pages up to here have been prepared; see `prepare.rs`.
    pub(crate) populated_bytes: AtomicU64,
    pub(crate) pace: Pace,
    pub(crate) allocator: DramAllocator<D>,
}

impl<D: Dram> Heap<D> {
    /// Begins a new region of an engine on a fresh medium. Space can be reserved immediately, but the region is valid
    /// only once [`Heap::finish_format`] has returned.
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
        heap.finish_sweep(medium);
        Ok(heap)
    }

    /// Makes a new region valid, and durable together with everything flushed into it so far.
    ///
    /// # Errors
    /// [`HeapError::Medium`] if the medium fails; the region then still counts as fresh.
    pub fn finish_format<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        self.region.finish_format(medium)
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
        heap.walk(medium)?;
        if may_lack_durability(medium) {
            medium.flush(Offset(0).span(UNIT_BYTES));
            medium.order();
        }
        if medium.breaks(canary::PUT_BELOW_MARK) {
            heap.finish_sweep(medium);
        }
        Ok(heap)
    }

    fn new(region: Region, mark: u32, image: ImageWord, dram: D) -> Result<Heap<D>, HeapError> {
        let allocator = DramAllocator::new(dram);
        let table = Table::new(&allocator)?;
        let lanes = Lanes::new(&allocator).inspect_err(|_| {
            // SAFETY: no other thread has a reference to the table.
            unsafe { table.give_back(&allocator) }
        })?;
        let space = Space::new(mark, &allocator).inspect_err(|_| {
            // SAFETY: no other thread has a reference to the table or the lanes.
            unsafe {
                lanes.give_back(&allocator);
                table.give_back(&allocator);
            }
        })?;
        let heap = Heap {
            region,
            lanes,
            space: Spin::new(space),
            figures: Figures::default(),
            runs_low: AtomicBool::new(false),
            table,
            unswept_past: mark,
            is_sweep_ending: AtomicBool::new(false),
            is_swept: AtomicBool::new(false),
            image: Spin::new(image),
            populated_bytes: AtomicU64::new(0),
            pace: Pace::default(),
            allocator,
        };
        heap.note(&heap.space.lock());
        Ok(heap)
    }

    /// Enters every chunk below the mark into the table, unswept, and ensures that everything except free runs has
    /// space.
    fn walk<M: Medium>(&self, medium: &M) -> Result<(), HeapError> {
        self.table.cover(&self.allocator, FIRST_CHUNK_UNIT, self.unswept_past)?;
        let (mut unit, mut backer) = (FIRST_CHUNK_UNIT, Backer::new(medium));
        let mut headers = HeadersAhead::of(unit, self.unswept_past);
        while unit < self.unswept_past {
            headers.expect(medium, unit);
            let header = ChunkHeader::load(medium, unit, self.unswept_past)?;
            self.enter(unit, header)?;
            match header.kind {
                ChunkKind::Free => backer.skip(unit, header.units)?,
                ChunkKind::Slots(SlotKind::SEGMENTS) => {
                    medium.prefetch(unit_start(unit).span(u64::from(header.units) * UNIT_BYTES));
                }
                _ => {}
            }
            if may_lack_durability(medium) {
                medium.flush(unit_start(unit).span(CHUNK_HEADER_BYTES));
            }
            unit += header.units;
        }
        Ok(backer.finish(unit)?)
    }

    fn enter(&self, unit: u32, header: ChunkHeader) -> Result<(), HeapError> {
        match header.kind {
            ChunkKind::Free => self.table.at(unit).set(Tag::FREE.with(Tag::UNSWEPT), header.units),
            ChunkKind::Extent => self.table.at(unit).set(Tag::EXTENT.with(Tag::UNSWEPT), header.units),
            ChunkKind::Slots(slot_kind) => {
                let slab = self.space.lock().record(&self.allocator, slot_kind)?;
                slab.begin(unit, State::Unswept);
                self.table.enter_slab(slab);
            }
        }
        Ok(())
    }

    /// Returns the region's superblock.
    pub fn superblock(&self) -> Superblock {
        self.region.superblock()
    }

    /// Returns true if the region has these feature flags.
    #[inline]
    pub fn has_features(&self, features: u32) -> bool {
        self.region.has_features(features)
    }

    /// Sets these feature flags permanently. They are durable before anything that is written after this returns.
    #[inline]
    pub fn set_features<M: Medium>(&self, medium: &M, features: u32) {
        if !self.has_features(features) {
            self.region.set_features(medium, features);
        }
    }

    /// Returns the store's generation: segments of any other generation are void.
    pub fn generation(&self) -> u16 {
        self.region.generation()
    }

    /// Sets the generation: one word, so that a crash leaves the old or the new one. It is ordered before anything
    /// that follows; a caller that needs it durable commits.
    pub fn set_generation<M: Medium>(&self, medium: &M, generation: u16) {
        self.region.set_generation(medium, generation);
    }

    /// Returns the epoch that items are stamped with.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if the word does not fit its check.
    pub fn snapshot_epoch<M: Medium>(&self, medium: &M) -> Result<u32, HeapError> {
        state::load_snapshot_epoch(medium)
    }

    /// Sets the snapshot epoch: one word, ordered before anything that follows.
    pub fn set_snapshot_epoch<M: Medium>(&self, medium: &M, epoch: u32) {
        if medium.breaks(canary::EPOCH_NOT_FLUSHED) {
            return medium.store(SNAPSHOT_EPOCH, pmem::seal(u64::from(epoch)), Ordering::Release);
        }
        state::store_snapshot_epoch(medium, epoch);
        medium.order();
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
            && let Some(offset) = self.slot_at_hand(medium, SlotKind::of_class(class), lane)
        {
            return Ok(Reservation::new(self, Place { offset, kind: PlaceKind::Slot(class) }));
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
        match self.take_slot(medium, SlotKind::of_class(class), lane) {
            Ok(offset) => Ok(Reservation::new(self, Place { offset, kind: PlaceKind::Slot(class) })),
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
            let offset = self.take_free_slot(medium, SlotKind::of_class(class), lane)?;
            Some(Reservation::new(self, Place { offset, kind: PlaceKind::Slot(class) }))
        })
    }

    /// Turns a reserved place that nothing refers to into a reservation again, to be filled. Dropping it frees the
    /// place.
    pub fn hold(&self, place: Place) -> Reservation<'_, D> {
        Reservation::new(self, place)
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
        *first = self.take_slot(medium, slot_kind, lane)?;
        Ok(1 + self.take_claimed(slot_kind, lane, rest))
    }

    /// Reserves a segment. Its first line is zero if the segment was never used; otherwise it holds old contents.
    ///
    /// # Errors
    /// As for [`Heap::reserve`].
    pub fn reserve_segment<M: Medium>(&self, medium: &M) -> Result<Reservation<'_, D>, HeapError> {
        let offset = self.take_slot(medium, SlotKind::SEGMENTS, 0)?;
        Ok(Reservation::new(self, Place { offset, kind: PlaceKind::Segment }))
    }

    /// Reserves an extent for `len_bytes`, however few.
    ///
    /// # Errors
    /// As for [`Heap::reserve`].
    #[cold]
    pub fn reserve_extent<M: Medium>(&self, medium: &M, len_bytes: u64) -> Result<Reservation<'_, D>, HeapError> {
        let units = extent_units(len_bytes)?;
        let unit = self.gathering(medium, || self.new_chunk(medium, ChunkHeader::extent(units)))?;
        self.table.at(unit).set(Tag::EXTENT, units);
        let offset = unit_start(unit).plus(CHUNK_HEADER_BYTES);
        Ok(Reservation::new(self, Place { offset, kind: PlaceKind::Extent }))
    }
}

/// Returns true if a process that died may have left stores that are visible but not durable.
fn may_lack_durability<M: Medium>(medium: &M) -> bool {
    medium.is_writable() && !medium.opens_durable() && !medium.breaks(canary::HEAD_LEFT_AS_FOUND)
}

impl<D: Dram> Drop for Heap<D> {
    fn drop(&mut self) {
        let space = self.space.get_mut();
        let past = space.mark;
        for slab in space.drain_pool() {
            // SAFETY: the heap is being dropped, and its records are not used afterwards.
            unsafe { slab.give_back(&self.allocator) };
        }
        self.each_chunk(past, |unit, tag, _| {
            if tag.slot_kind().is_some()
                && let Some(slab) = self.table.at(unit).slab()
            {
                // SAFETY: as above; each record is visited once, at its chunk's first unit.
                unsafe { slab.give_back(&self.allocator) };
            }
        });
        // SAFETY: as above.
        unsafe {
            self.space.get_mut().give_back(&self.allocator);
            self.lanes.give_back(&self.allocator);
            self.table.give_back(&self.allocator);
        }
    }
}
