//! The position word, which commits an index entry
//! (`docs/decisions/0001-commit-an-entry-with-one-8-byte-store.md`).

use heap::layout::REGION_BYTES_MAX;
use heap::{Class, Place, PlaceKind};
use pmem::Offset;

/// The place of an item and the state of its entry: 48 bits of offset below 16 bits of marks.
///
/// ```text
///  63    61 60      53  52  51  50  49  48 47                                0
/// +--------+----------+---+---+---+---+---+-----------------------------------+
/// |reserved|size class|OVF|EXT|BAT|DEL|FRE|          offset in bytes          |
/// +--------+----------+---+---+---+---+---+-----------------------------------+
/// ```
///
/// An entry is *empty* if its offset is 0, whatever its marks are: the overflow bit belongs to the line and
/// outlives the entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Position(u64);

const OFFSET_BITS: u32 = 48;
const OFFSET: u64 = (1 << OFFSET_BITS) - 1;
const FRESH: u64 = 1 << 48;
const DELETED: u64 = 1 << 49;
const BATCH: u64 = 1 << 50;
const EXTENT: u64 = 1 << 51;
const OVERFLOW: u64 = 1 << 52;
const CLASS_SHIFT: u32 = 53;
const CLASS: u64 = 0xFF << CLASS_SHIFT;
const RESERVED: u64 = 0b111 << 61;

const _: () = assert!(OFFSET | FRESH | DELETED | BATCH | EXTENT | OVERFLOW | CLASS | RESERVED == u64::MAX);

/// Items start at multiples of this power of two, in bytes.
const GRAIN_BITS: u32 = 4;
/// The bits of an offset in [`Position::to_48_bits`]. The size class is above them.
const SHORT_OFFSET_BITS: u32 = 40;
const SHORT_EXTENT: u64 = 0xFF;

const _: () = {
    assert!(REGION_BYTES_MAX <= 1 << (SHORT_OFFSET_BITS + GRAIN_BITS));
    assert!((Class::COUNT as u64) < SHORT_EXTENT);
};

impl Position {
    /// The word without an item and without a mark.
    pub const EMPTY: Position = Position(0);

    /// Returns the word for an item at `place`.
    ///
    /// # Panics
    /// Panics if the offset needs more than 48 bits, or the place is a segment.
    #[inline(always)]
    #[must_use]
    pub fn of(place: Place) -> Position {
        assert!(place.offset.0 <= OFFSET, "offset {:#x} needs more than {OFFSET_BITS} bits", place.offset.0);
        let kind = match place.kind {
            PlaceKind::Slot(class) => u64::from(class.index()) << CLASS_SHIFT,
            PlaceKind::Extent => EXTENT,
            PlaceKind::Segment => panic!("a segment is not an item"),
        };
        Position(place.offset.0 | kind)
    }

    /// Returns the position in a word of an entry.
    #[must_use]
    pub const fn from_word(word: u64) -> Position {
        Position(word)
    }

    /// Returns the word to store.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Returns the offset of the item's first byte.
    #[inline(always)]
    #[must_use]
    pub const fn offset(self) -> Offset {
        Offset(self.0 & OFFSET)
    }

    /// Returns the place of the item, for the allocator. Returns `None` for a damaged word: its class does not
    /// exist, or it has a class and is an extent.
    #[inline(always)]
    #[must_use]
    pub fn place(self) -> Option<Place> {
        let kind = if self.0 & EXTENT != 0 {
            if self.class_index() != 0 {
                return None;
            }
            PlaceKind::Extent
        } else {
            PlaceKind::Slot(Class::from_index(self.class_index())?)
        };
        Some(Place { offset: self.offset(), kind })
    }

    /// Returns the size in bytes of the item's slot, 0 if the word's class does not exist, or `None` for an extent.
    #[inline(always)]
    #[must_use]
    pub const fn slot_bytes(self) -> Option<u64> {
        if self.0 & EXTENT == 0 { Some(Class::bytes_of(self.class_index())) } else { None }
    }

    /// Returns the size class as a number, 0 for an extent.
    #[inline(always)]
    #[must_use]
    pub const fn class_index(self) -> u8 {
        (self.0 >> CLASS_SHIFT) as u8
    }

    /// Returns true if the word names no item.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 & OFFSET == 0
    }

    /// Returns true if the word names an item that is not deleted.
    #[inline(always)]
    #[must_use]
    pub const fn is_live(self) -> bool {
        !self.is_empty() && self.0 & DELETED == 0
    }

    /// Returns true while the word is visible but perhaps not durable.
    #[inline(always)]
    #[must_use]
    pub const fn is_fresh(self) -> bool {
        self.0 & FRESH != 0
    }

    /// Returns true while a batch decides the value of the entry; see `partitioned_hash::batch`.
    #[inline(always)]
    #[must_use]
    pub const fn is_in_batch(self) -> bool {
        self.0 & BATCH != 0
    }

    /// Returns true if a thread must not act on the word as it is: it is fresh, or in a batch.
    #[inline(always)]
    #[must_use]
    pub const fn is_undecided(self) -> bool {
        self.0 & (FRESH | BATCH) != 0
    }

    /// Returns true if the word names an item that is not deleted and has no mark of an undecided state. It tests
    /// all marks at once.
    #[inline(always)]
    #[must_use]
    pub const fn is_live_and_decided(self) -> bool {
        self.0 & (FRESH | DELETED | BATCH) == 0 && !self.is_empty()
    }

    /// Returns true if the item was deleted. When the mark is durable, the entry counts as empty.
    #[must_use]
    pub const fn is_deleted(self) -> bool {
        self.0 & DELETED != 0
    }

    /// Returns true if entries overflowed out of this word's line by the overflow path that this word stands for.
    #[inline(always)]
    #[must_use]
    pub const fn has_overflow(self) -> bool {
        self.0 & OVERFLOW != 0
    }

    /// Returns the word with the mark FRESH: visible, durability not yet known.
    #[must_use]
    pub const fn fresh(self) -> Position {
        Position(self.0 | FRESH)
    }

    /// Returns the word without the mark FRESH.
    #[inline(always)]
    #[must_use]
    pub const fn settled(self) -> Position {
        Position(self.0 & !FRESH)
    }

    /// Returns the word for a copy of this entry: the item, and the mark FRESH if this word has it.
    #[must_use]
    pub const fn moved(self) -> Position {
        Position(self.item().0 | self.0 & FRESH)
    }

    /// Returns the word with the mark BATCH: a batch decides.
    #[must_use]
    pub const fn in_batch(self) -> Position {
        Position(self.0 | BATCH)
    }

    /// Returns the word without the mark BATCH.
    #[must_use]
    pub const fn out_of_batch(self) -> Position {
        Position(self.0 & !BATCH)
    }

    /// Returns the word with the mark DELETED.
    #[must_use]
    pub const fn deleted(self) -> Position {
        Position(self.0 | DELETED)
    }

    /// Returns the word with the line's overflow bit.
    #[must_use]
    pub const fn overflow(self) -> Position {
        Position(self.0 | OVERFLOW)
    }

    /// Returns this word with the overflow bit of the word `old` that it replaces, because that bit belongs to the
    /// line.
    #[must_use]
    pub const fn in_place_of(self, old: Position) -> Position {
        Position(self.0 & !OVERFLOW | old.0 & OVERFLOW)
    }

    /// Returns the empty word that keeps the line's overflow bit.
    #[must_use]
    pub const fn emptied(self) -> Position {
        Position(self.0 & OVERFLOW)
    }

    /// Returns the item and its kind without marks, which identify the item.
    #[must_use]
    pub const fn item(self) -> Position {
        Position(self.0 & (OFFSET | EXTENT | CLASS))
    }

    /// Returns the item and its kind in 48 bits. They fit because regions are shorter than offsets allow, and items
    /// start at multiples of 16.
    #[inline(always)]
    pub(crate) const fn to_48_bits(self) -> u64 {
        let kind = if self.0 & EXTENT != 0 { SHORT_EXTENT } else { self.class_index() as u64 };
        (self.0 & OFFSET) >> GRAIN_BITS | kind << SHORT_OFFSET_BITS
    }

    /// Returns the position that [`Position::to_48_bits`] converted.
    #[inline(always)]
    pub(crate) const fn from_48_bits(bits: u64) -> Position {
        let offset = (bits & ((1 << SHORT_OFFSET_BITS) - 1)) << GRAIN_BITS;
        let kind = bits >> SHORT_OFFSET_BITS;
        Position(offset | if kind == SHORT_EXTENT { EXTENT } else { kind << CLASS_SHIFT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_not_touch_the_item() {
        let place = Place { offset: Offset(0x1234_5678_9AB0), kind: PlaceKind::Slot(Class::for_bytes(288).unwrap()) };
        let position = Position::of(place);
        let marked = position.fresh().deleted().overflow();
        assert_eq!(marked.item(), position);
        assert_eq!(marked.place(), Some(place));
        assert!(marked.is_fresh() && marked.is_deleted() && marked.has_overflow() && !marked.is_live());
        assert_eq!(marked.settled(), position.deleted().overflow());
        assert!(
            marked.in_batch().is_in_batch() && position.in_batch().is_undecided() && position.fresh().is_undecided()
        );
        assert_eq!(marked.in_batch().out_of_batch(), marked);
        assert_eq!(marked.in_batch().item(), position);
        assert!(marked.emptied().is_empty() && marked.emptied().has_overflow());
        assert!(position.in_place_of(marked).has_overflow());
        assert!(!marked.in_place_of(position).has_overflow());
        let extent = Position::of(Place { offset: Offset(64), kind: PlaceKind::Extent });
        assert_eq!(extent.place().map(|place| place.kind), Some(PlaceKind::Extent));
        assert_eq!((marked.slot_bytes(), extent.slot_bytes()), (Some(288), None));
        let damaged = (CLASS_SHIFT..61).map(|bit| Position::from_word(extent.word() ^ 1 << bit));
        assert!(damaged.into_iter().all(|position| position.place().is_none()), "an extent is of no class");
    }

    #[test]
    fn item_and_kind_fit_48_bits() {
        let classes = (0..Class::COUNT as u8).filter_map(Class::from_index).map(PlaceKind::Slot);
        for kind in classes.chain([PlaceKind::Extent]) {
            for offset in [16, 0x1234_5670, REGION_BYTES_MAX - 16] {
                let position = Position::of(Place { offset: Offset(offset), kind });
                assert!(position.to_48_bits() < 1 << 48);
                assert_eq!(Position::from_48_bits(position.fresh().overflow().to_48_bits()), position);
            }
        }
    }
}
