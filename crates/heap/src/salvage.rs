//! Salvage: reads the head and the chunks of a damaged region without opening the region and without storing
//! anything.
//!
//! An opening refuses a region that contradicts itself, because writers would rely on the contradiction. Salvage
//! relies on nothing: each part is read independently, damage is reported, and a damaged part becomes `None`.
//!
//! A chunk whose header is damaged hides the start of the next one. The walk continues at the next unit that looks
//! like a chunk and is followed by another one; everything between is [`Contents::Unknown`].

use core::sync::atomic::Ordering;

use pmem::{Medium, Offset};

use crate::free_words::ListedChunks;
use crate::header::{ChunkHeader, ChunkKind};
use crate::image::{ImageWord, NamedImage};
use crate::layout::{
    CHUNK_HEADER_BYTES, FIRST_CHUNK_UNIT, FORMAT_MARK, HIGH_WATER_MARK, REGION_BYTES_MAX, UNIT_BYTES, unit_start,
};
use crate::slot_kind::SlotKind;
use crate::superblock::Superblock;
use crate::{Class, EngineNumber, HeapError, state, superblock_repair};

pub use crate::superblock_repair::OnDamage;

/// The readable parts of a region's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The superblock.
    pub superblock: Option<Superblock>,
    /// The number of units below the high-water mark.
    pub mark_units: Option<u32>,
    /// The store's generation.
    pub generation: Option<u16>,
    /// The clean image, if one is named.
    pub image: Option<NamedImage>,
}

/// The contents of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Nothing.
    Free,
    /// Slots of a size class.
    Slots(Class),
    /// Segments of the hash index.
    Segments,
    /// One item, or the clean image.
    Extent,
    /// Unknown, because the header is damaged: one chunk or several.
    Unknown,
}

/// A chunk, as far as the medium contains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its first unit.
    pub unit: u32,
    /// Its length.
    pub units: u32,
    /// The kind of its contents.
    pub contents: Contents,
}

impl Head {
    /// Reads everything that is readable.
    ///
    /// # Errors
    /// [`HeapError::Newer`], [`HeapError::UnknownFeatures`]: the region is not damaged, but this program does not
    /// support it.
    pub fn read<M: Medium>(medium: &M, on_damage: &mut OnDamage<'_>) -> Result<Head, HeapError> {
        let superblock = superblock_repair::salvage(medium, on_damage)?;
        let mut report = |error: HeapError| {
            if let HeapError::Damaged { offset, what } = error {
                on_damage(Offset(offset), what);
            }
        };
        if medium.len_bytes() < UNIT_BYTES {
            report(HeapError::Damaged { offset: FORMAT_MARK.0, what: "the head's words lie beyond the file's end" });
            return Ok(Head { superblock, mark_units: None, generation: None, image: None });
        }
        if medium.load(FORMAT_MARK, Ordering::Acquire) != 0 {
            report(HeapError::Damaged { offset: FORMAT_MARK.0, what: "the format mark is not clear" });
        }
        let region_bytes = superblock.map_or(REGION_BYTES_MAX, |superblock| superblock.region_bytes);
        let mark_units = state::load_mark(medium, region_bytes).map_err(&mut report).ok();
        let generation = state::load_generation(medium).map_err(&mut report).ok();
        let image = superblock.map(|superblock| ImageWord::load(medium, superblock).map_err(&mut report));
        let image = image.and_then(Result::ok).and_then(ImageWord::named);
        Ok(Head { superblock, mark_units, generation, image })
    }

    /// Returns the region's engine, unless the superblock is lost.
    #[must_use]
    pub fn engine(&self) -> Option<EngineNumber> {
        self.superblock.map(|superblock| superblock.engine)
    }

    /// Refuses the region of another engine. A region without a readable superblock may belong to any engine.
    ///
    /// # Errors
    /// [`HeapError::WrongEngine`] if the superblock names another engine.
    pub fn of_engine(self, wanted: EngineNumber) -> Result<Head, HeapError> {
        self.superblock.map_or(Ok(()), |superblock| superblock.confirm_engine(wanted))?;
        Ok(self)
    }

    /// Returns the first unit past all chunks, as far as the medium contains them.
    fn past_unit<M: Medium>(&self, medium: &M) -> u32 {
        let units = (medium.len_bytes() / UNIT_BYTES) as u32;
        self.mark_units.map_or(units, |mark| mark.min(units))
    }

    /// Calls `each` with every chunk, in the order of their units.
    pub fn chunks<M: Medium>(&self, medium: &M, on_damage: &mut OnDamage<'_>, each: &mut dyn FnMut(Chunk)) {
        if self.mark_units.is_some_and(|mark| u64::from(mark) * UNIT_BYTES > medium.len_bytes()) {
            on_damage(HIGH_WATER_MARK, "chunks lie beyond the file's end");
        }
        let (mut unit, past) = (FIRST_CHUNK_UNIT, self.past_unit(medium));
        while unit < past {
            let is_unused = self.mark_units.is_none() && medium.load(unit_start(unit), Ordering::Relaxed) == 0;
            if is_unused {
                return;
            }
            let chunk = chunk_at(medium, unit, past).unwrap_or_else(|what| {
                on_damage(unit_start(unit), what);
                let next = (unit + 1..past).find(|&next| looks_like_chunks(medium, next, past)).unwrap_or(past);
                Chunk { unit, units: next - unit, contents: Contents::Unknown }
            });
            each(chunk);
            unit += chunk.units;
        }
    }
}

/// Reads the chunk at `unit`, cut at the end of the medium.
fn chunk_at<M: Medium>(medium: &M, unit: u32, past: u32) -> Result<Chunk, &'static str> {
    let header = ChunkHeader::decode(medium.load(unit_start(unit), Ordering::Relaxed))?;
    let contents = match header.kind {
        ChunkKind::Free => Contents::Free,
        ChunkKind::Extent => Contents::Extent,
        ChunkKind::Slots(slot_kind) => slot_kind.class().map_or(Contents::Segments, Contents::Slots),
    };
    Ok(Chunk { unit, units: header.units.min(past - unit), contents })
}

/// Returns true if there is a chunk at `unit`, followed by another chunk or by the end.
fn looks_like_chunks<M: Medium>(medium: &M, unit: u32, past: u32) -> bool {
    let is_followed = |chunk: Chunk| {
        let next = chunk.unit + chunk.units;
        next == past || chunk_at(medium, next, past).is_ok()
    };
    chunk_at(medium, unit, past).is_ok_and(is_followed)
}

impl Chunk {
    /// Returns a chunk of slots of `class` at `unit`, whatever the header says.
    #[must_use]
    pub fn of_class(unit: u32, class: Class) -> Chunk {
        Chunk { unit, units: SlotKind::of_class(class).geometry().units, contents: Contents::Slots(class) }
    }

    /// Iterates over the places of a chunk of segments, as far as the medium contains them.
    pub fn segment_places(self) -> impl Iterator<Item = Offset> {
        let geometry = SlotKind::SEGMENTS.geometry();
        let end = (u64::from(self.units) * UNIT_BYTES).saturating_sub(geometry.slot_bytes);
        let places = (0..geometry.slot_count).map(move |slot| geometry.slot_start(slot));
        places.take_while(move |&at| at <= end).map(move |at| unit_start(self.unit).plus(at))
    }

    /// Iterates over the offsets of its items: one for each slot, or one for an extent.
    pub fn item_places(self) -> impl Iterator<Item = Offset> {
        let (count, first_bytes, step_bytes) = match self.contents {
            Contents::Slots(class) => {
                let geometry = SlotKind::of_class(class).geometry();
                (geometry.slot_count, geometry.first_slot_bytes, geometry.slot_bytes)
            }
            Contents::Extent => (1, CHUNK_HEADER_BYTES, 0),
            _ => (0, 0, 0),
        };
        (0..u64::from(count)).map(move |slot| unit_start(self.unit).plus(first_bytes + slot * step_bytes))
    }

    /// Returns true if the clean image's words `free` of this chunk have slot `slot` in use. An extent has no words.
    #[must_use]
    pub fn is_in_use(self, free: &[u64], slot: usize) -> bool {
        match self.contents {
            Contents::Extent => free.is_empty(),
            _ => free.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 0),
        }
    }

    /// Returns the number of the slot that starts at `at`, 0 for an extent; `None` if no item can start there.
    #[must_use]
    pub fn slot_at(self, at: Offset) -> Option<usize> {
        let within = at.0.checked_sub(unit_start(self.unit).0)?;
        match self.contents {
            Contents::Slots(class) if within < u64::from(self.units) * UNIT_BYTES => {
                SlotKind::of_class(class).geometry().slot_at(within).map(|slot| slot as usize)
            }
            Contents::Extent => (within == CHUNK_HEADER_BYTES).then_some(0),
            _ => None,
        }
    }
}

/// Iterates over the chunks in the free words of a clean image: the first unit and the words of each.
pub fn listed(words: &[u64]) -> impl Iterator<Item = (u32, &[u64])> {
    ListedChunks::new(words)
}
