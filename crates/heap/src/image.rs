//! The clean image: an extent in which an orderly close records what the next opening would otherwise have to find
//! out. `free_words` describes free space in it; the caller defines the other contents.
//!
//! # Naming an image
//! 1. An extent is reserved, written and flushed, order. *Crash:* an extent to which nothing refers: the sweep frees
//!    it.
//! 2. The image word names the extent: one word, commit. *Crash:* the old word, or the image.
//!
//! # Giving it up, before the store's first change
//! 1. The word names no extent, order. *Crash:* no image, or the image; nothing has changed since it was written.
//! 2. The extent is freed. *Crash:* an extent to which nothing refers, or a free run.
//!
//! # Numbers
//! Images are numbered. The word holds the number of the last image, whether or not that image is still named, and
//! each image holds its own number. So an older image in the place of a newer one is never trusted.

use pmem::{Dram, Level, Medium, seal};

use crate::canary;
use crate::chunks::Chunks;
use crate::layout::{CHUNK_HEADER_BYTES, IMAGE, unit_start};
use crate::lock::Spin;
use crate::place::{Place, PlaceKind};
use crate::reservation::Reservation;
use crate::superblock::{FEATURE_IMAGE, Superblock};
use crate::{HeapError, state};

const UNIT_BITS: u32 = 24;
const UNIT: u64 = (1 << UNIT_BITS) - 1;
/// Numbers repeat after sixteen million closes.
const NUMBER: u32 = (1 << 24) - 1;

/// The image word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ImageWord {
    /// The number of the last image.
    number: u32,
    /// The first unit of its extent, 0 if no image is named.
    unit: u32,
}

/// An image that the region names. Its reader checks whether it is intact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedImage {
    /// The extent that should hold it.
    pub place: Place,
    /// The number that it should have.
    pub number: u32,
}

impl ImageWord {
    /// Reads the image word of a region. It is empty where the region may not have an image.
    pub(crate) fn load<M: Medium>(medium: &M, superblock: Superblock) -> Result<ImageWord, HeapError> {
        let is_unused = medium.load(IMAGE, core::sync::atomic::Ordering::Acquire) == 0;
        if is_unused || superblock.features & FEATURE_IMAGE == 0 {
            return Ok(ImageWord::default());
        }
        let payload = state::load_sealed(medium, IMAGE, "the image word does not fit its check")?;
        Ok(ImageWord { number: (payload >> UNIT_BITS) as u32, unit: (payload & UNIT) as u32 })
    }

    /// Stores and flushes the word; the order is the caller's.
    fn store<M: Medium>(self, medium: &M) {
        state::store_word(medium, IMAGE, seal(u64::from(self.number) << UNIT_BITS | u64::from(self.unit)));
    }

    /// Returns the image that the word names.
    pub(crate) fn named(self) -> Option<NamedImage> {
        self.place().map(|place| NamedImage { place, number: self.number })
    }

    fn place(self) -> Option<Place> {
        let offset = unit_start(self.unit).plus(CHUNK_HEADER_BYTES);
        (self.unit != 0).then_some(Place { offset, kind: PlaceKind::Extent })
    }
}

/// The clean image of a region. The caller keeps threads that name an image apart from threads that give one up.
pub struct Image {
    word: Spin<ImageWord>,
}

impl Image {
    pub(crate) fn new(word: ImageWord) -> Image {
        Image { word: Spin::new(word) }
    }

    /// Returns the image that the region names.
    pub fn named(&self) -> Option<NamedImage> {
        self.word.lock().named()
    }

    /// Returns the number that the next image must have.
    pub fn next_number(&self) -> u32 {
        self.word.lock().number.wrapping_add(1) & NUMBER
    }

    /// Names the image with the next number, which was written to the reservation and flushed. Durable when this
    /// returns.
    ///
    /// # Errors
    /// [`HeapError::Medium`] if the medium fails; the image may then be named or not.
    pub fn name<M: Medium, D: Dram>(&self, medium: &M, image: Reservation<'_, D>) -> Result<(), HeapError> {
        let unit = (image.publish().offset.0 / crate::layout::UNIT_BYTES) as u32;
        let word = ImageWord { number: self.next_number(), unit };
        *self.word.lock() = word;
        if !medium.breaks(canary::STALE_IMAGE) && !medium.breaks(canary::TORN_IMAGE) {
            medium.order();
        }
        word.store(medium);
        Ok(medium.wait(medium.commit(Level::Strongest))?)
    }

    /// Gives up the image, if one is named, and frees its extent. Ordered before anything that follows.
    pub(crate) fn forget<M: Medium, D: Dram>(&self, chunks: &Chunks<D>, medium: &M) {
        let word = *self.word.lock();
        let Some(place) = word.place() else { return };
        let unnamed = ImageWord { unit: 0, ..word };
        *self.word.lock() = unnamed;
        if medium.breaks(canary::CLEAN_FLAG_LEFT_SET) {
            return chunks.cancel(place);
        }
        unnamed.store(medium);
        medium.order();
        chunks.free(medium, place);
    }
}

const _: () = assert!(UNIT == crate::layout::REGION_UNITS_MAX - 1 && NUMBER as u64 <= u64::MAX >> (16 + UNIT_BITS));
