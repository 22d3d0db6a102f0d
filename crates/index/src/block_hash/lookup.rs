//! One optimistic attempt on a key's two buckets, which answers most reads.
//!
//! A lookup is sure in two cases: a slot without a lock bit begins as a slot of the key does, or no slot does and
//! no lock bit is set. It compares four bytes of each slot, chosen so that one word contains all four. No branch
//! depends on the slot that holds the key, so a processor can proceed to the next key's buckets while these are
//! still loading. In all other cases the caller runs a search (`read`): chains, batches, buckets that changed
//! during the lookup, and buckets with slots of several kinds.

use pmem::arch::equal_halves;
use pmem::{Medium, MediumError, Offset};

use super::Slot;
use super::image::{Stored, Words};
use super::layout::{Meta, SLOT_COUNT, slot_start};
use super::read::OptimisticRead;
use super::slot::{Heads, Key, is_alike, is_item};
use crate::Position;

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// A slot with the key's signature names this item, which may belong to another key.
    Item(Position),
    /// The slot of the key, which holds the item inline.
    Whole(Slot),
    /// The key is absent.
    Nothing,
    /// A search is needed.
    Unsure,
}

/// For each slot, the word that contains four of its first eight bytes.
const LOOKED_AT: [u8; SLOT_COUNT] = [1, 5, 9, 13, 16, 20, 24, 28];

/// For each pair of slots, the shift of the slot's head that yields those four bytes: the first four, the four
/// behind the first byte, and so on.
const SHIFTS: [u32; SLOT_COUNT / 2] = [0, 8, 16, 24];

const _: () = {
    let mut i = 0;
    while i < SLOT_COUNT {
        let four = slot_start(i) + i % 4;
        assert!(
            four / 8 == LOOKED_AT[i] as usize && four % 8 == i / 4 * 4,
            "the low half of the first four words, the high of the last"
        );
        i += 1;
    }
};

/// Returns the slots of a bucket that hold an item and begin with `head`, as far as four bytes show: bit i for slot
/// i.
#[inline(always)]
fn hits<M: Medium>(medium: &M, at: Offset, meta: Meta, head: u64) -> u32 {
    let wanted = SHIFTS.map(|shift| (head >> shift) as u32);
    equal_halves(medium.load_some(at, LOOKED_AT), wanted) & u32::from(meta.bitmap())
}

/// The result of comparing the beginnings of all slots in both buckets.
pub(super) struct BucketMatches<'a, M> {
    medium: &'a M,
    places: [Offset; 2],
    pub(super) metas: [Meta; 2],
    /// The shape of the first slot. The comparison used a head of that kind.
    shape: u8,
    /// The slots that matched: those of the first bucket, then those of the second.
    hits: u32,
}

/// A slot that may hold the key.
pub(super) struct Spot<'a, M> {
    stored: Stored<'a, M>,
    meta: Meta,
    pub(super) choice: usize,
    pub(super) i: usize,
}

/// The result of comparing the beginnings of slots.
pub(super) enum SlotMatches<'a, M> {
    At(Spot<'a, M>),
    Nothing,
    Unsure,
}

impl<'a, M: Medium> BucketMatches<'a, M> {
    /// Compares the slots of the buckets at `places`. Returns `None` if the first slot is of a kind that never
    /// holds the key.
    #[inline(always)]
    pub(super) fn of(medium: &'a M, places: [Offset; 2], key: Key<'_>) -> Option<BucketMatches<'a, M>> {
        let [first, second] = places;
        let metas = [first, second].map(|at| Stored { medium, at }.meta());
        let shape = metas[0].first_shape();
        let head = if is_item(shape) { key.signature } else { Heads::of_small(shape, key.bytes)? };
        let hits = hits(medium, first, metas[0], head) | hits(medium, second, metas[1], head) << SLOT_COUNT;
        Some(BucketMatches { medium, places, metas, shape, hits })
    }

    /// Returns true if all slots are of the same kind, so that only a matching slot can hold the key.
    #[inline(always)]
    fn are_alike(&self) -> bool {
        self.metas.iter().all(|meta| meta.has_only_like(self.shape))
    }

    /// Returns the first matching slot, if there is one.
    #[inline(always)]
    fn first(&self) -> Spot<'a, M> {
        let number = self.hits.trailing_zeros() as usize;
        let (choice, i) = ((number / SLOT_COUNT) & 1, number % SLOT_COUNT);
        let stored = Stored { medium: self.medium, at: self.places[choice] };
        Spot { stored, meta: self.metas[choice], choice, i }
    }

    /// Returns the only slot of the key, or `Unsure` if there may be several.
    #[inline(always)]
    pub(super) fn only(&self) -> SlotMatches<'a, M> {
        match self.hits {
            _ if !self.are_alike() => SlotMatches::Unsure,
            0 => SlotMatches::Nothing,
            hits if hits.is_power_of_two() => SlotMatches::At(self.first()),
            _ => SlotMatches::Unsure,
        }
    }
}

impl<M: Medium> Spot<'_, M> {
    /// Returns the slot.
    #[inline(always)]
    pub(super) fn slot(&self) -> Slot {
        self.stored.slot(self.meta, self.i)
    }

    /// Returns the first sixteen bytes of the slot.
    #[inline(always)]
    fn start(&self) -> [u64; 2] {
        let (word, shift) = ((slot_start(self.i) / 8) as u8, slot_start(self.i) % 8 * 8);
        let [low, middle, high] = self.stored.medium.load_some(self.stored.at, [word, word + 1, word + 2]);
        [low >> shift | middle << 1 << (63 - shift), middle >> shift | high << 1 << (63 - shift)]
    }
}

impl<'a, M: Medium> OptimisticRead<'a, M> {
    /// Compares both buckets. The result counts if this read is steady afterwards.
    #[inline(always)]
    pub(super) fn spot(&self, key: Key<'_>) -> SlotMatches<'a, M> {
        let Some(places) = self.plain_places() else { return SlotMatches::Unsure };
        // The second bucket's block is requested before the first one's arrives.
        self.medium.prefetch_line(places[1]);
        let Some(seen) = BucketMatches::of(self.medium, places, key) else { return SlotMatches::Unsure };
        if seen.hits == 0 {
            let is_sure = !seen.metas.iter().any(|meta| meta.is_any_locked()) && seen.are_alike();
            return if is_sure { SlotMatches::Nothing } else { SlotMatches::Unsure };
        }
        let spot = seen.first();
        if !spot.meta.is_locked(spot.i) && is_alike(spot.meta.shape(spot.i), seen.shape) {
            SlotMatches::At(spot)
        } else {
            SlotMatches::Unsure
        }
    }

    /// Looks up the key in both buckets. The result is sure only if `is_steady` returns true afterwards.
    #[inline(always)]
    pub(super) fn lookup(&self, key: Key<'_>, is_steady: impl Fn() -> bool) -> Lookup {
        match self.spot(key) {
            SlotMatches::At(spot) if is_item(spot.meta.shape(spot.i)) => {
                let [signature, position] = spot.start();
                let is_it = signature == key.signature && is_steady();
                if is_it { Lookup::Item(Position::from_word(position)) } else { Lookup::Unsure }
            }
            SlotMatches::At(spot) => {
                let slot = spot.slot();
                if key.may_be_in(&slot) && is_steady() { Lookup::Whole(slot) } else { Lookup::Unsure }
            }
            SlotMatches::Nothing if is_steady() && self.medium.check_lost_ranges().is_ok() => Lookup::Nothing,
            _ => Lookup::Unsure,
        }
    }

    /// Like [`BlockHash::lookup`], but returns the stored slot. `None` means that a search is needed.
    #[inline(always)]
    pub(super) fn try_find<E: From<MediumError>>(
        &self,
        key: Key<'_>,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<Option<Slot>>, E> {
        let slot = match self.spot(key) {
            SlotMatches::At(spot) => Some(spot.slot()).filter(|slot| key.may_be_in(slot)),
            SlotMatches::Nothing if self.is_steady() && self.medium.check_lost_ranges().is_ok() => {
                return Ok(Some(None));
            }
            _ => None,
        };
        let Some(slot) = slot.filter(|_| self.is_steady()) else { return Ok(None) };
        Ok(key.is_in(&slot, is_key)?.then_some(Some(slot)))
    }
}
