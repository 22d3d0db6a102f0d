//! One look at a key's two buckets: what most reads come to.
//!
//! It tells where a slot is that begins as one of the key does and bears no lock bit, and where there is none and no lock bit at all. Four bytes of each slot
//! are compared, at a place where a word has all four. Which slot the key is in decides no branch, so that a processor is at the next key's
//! buckets while these are still on the way. All else is left to a search (`find`): chains, batches, buckets that changed meanwhile,
//! and buckets that have slots of several kinds.

use pmem::arch::equal_halves;
use pmem::{Medium, MediumError, Offset};

use super::find::{Key, OptimisticRead};
use super::image::{Stored, Words};
use super::layout::{Meta, SLOT_COUNT, slot_start};
use super::slot::{Heads, is_alike, is_item};
use super::{BlockHash, Slot};
use crate::Position;
use crate::segmented::directory::Led;

/// What a look tells.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// A slot of the key's signature names this item, which may be another key's.
    Item(Position),
    /// The key's slot, which holds the item.
    Whole(Slot),
    /// The key is not there.
    Nothing,
    /// It takes a search.
    Unsure,
}

/// Of each slot the word that has four of its first eight bytes.
const LOOKED_AT: [u8; SLOT_COUNT] = [1, 5, 9, 13, 16, 20, 24, 28];

/// Which of those four bytes, of two slots, begin or end that word: the first four, the four behind the first byte, and so on.
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

/// Of a bucket's slots that hold an item, those that begin so, as far as four bytes tell: bit i for slot i.
#[inline(always)]
fn hits<M: Medium>(medium: &M, at: Offset, meta: Meta, head: u64) -> u32 {
    let wanted = SHIFTS.map(|shift| (head >> shift) as u32);
    equal_halves(medium.load_some(at, LOOKED_AT), wanted) & u32::from(meta.bitmap())
}

/// What the beginnings of both buckets' slots tell.
pub(super) struct Beginnings<'a, M> {
    medium: &'a M,
    places: [Offset; 2],
    pub(super) metas: [Meta; 2],
    /// The first slot's: what is looked for is such as one of its kind begins with.
    shape: u8,
    /// Slots that begin so: the first bucket's, and behind them the second one's.
    hits: u32,
}

/// A slot that may be the key's.
pub(super) struct Spot<'a, M> {
    stored: Stored<'a, M>,
    meta: Meta,
    pub(super) choice: usize,
    pub(super) i: usize,
}

/// What a look at the slots' beginnings tells.
pub(super) enum Spotted<'a, M> {
    At(Spot<'a, M>),
    Nothing,
    Unsure,
}

impl<'a, M: Medium> Beginnings<'a, M> {
    /// Those of the buckets at `places`; `None` if the first slot is of a kind that the key is never in.
    #[inline(always)]
    pub(super) fn of(medium: &'a M, places: [Offset; 2], key: Key<'_>) -> Option<Beginnings<'a, M>> {
        let [first, second] = places;
        let metas = [first, second].map(|at| Stored { medium, at }.meta());
        let shape = metas[0].first_shape();
        let head = if is_item(shape) { key.signature } else { Heads::of_small(shape, key.bytes)? };
        let hits = hits(medium, first, metas[0], head) | hits(medium, second, metas[1], head) << SLOT_COUNT;
        Some(Beginnings { medium, places, metas, shape, hits })
    }

    /// Whether no slot is of another kind: the key is in none but one that was hit.
    #[inline(always)]
    fn are_alike(&self) -> bool {
        self.metas.iter().all(|meta| meta.has_only_like(self.shape))
    }

    /// The first slot that was hit, if one was.
    #[inline(always)]
    fn first(&self) -> Spot<'a, M> {
        let number = self.hits.trailing_zeros() as usize;
        let (choice, i) = ((number / SLOT_COUNT) & 1, number % SLOT_COUNT);
        let stored = Stored { medium: self.medium, at: self.places[choice] };
        Spot { stored, meta: self.metas[choice], choice, i }
    }

    /// The key's only slot. `Unsure`: there may be more than one.
    #[inline(always)]
    pub(super) fn only(&self) -> Spotted<'a, M> {
        match self.hits {
            _ if !self.are_alike() => Spotted::Unsure,
            0 => Spotted::Nothing,
            hits if hits.is_power_of_two() => Spotted::At(self.first()),
            _ => Spotted::Unsure,
        }
    }
}

impl<M: Medium> Spot<'_, M> {
    /// The slot.
    #[inline(always)]
    pub(super) fn slot(&self) -> Slot {
        self.stored.slot(self.meta, self.i)
    }

    /// The slot's first sixteen bytes.
    #[inline(always)]
    fn start(&self) -> [u64; 2] {
        let (word, shift) = ((slot_start(self.i) / 8) as u8, slot_start(self.i) % 8 * 8);
        let [low, middle, high] = self.stored.medium.load_some(self.stored.at, [word, word + 1, word + 2]);
        [low >> shift | middle << 1 << (63 - shift), middle >> shift | high << 1 << (63 - shift)]
    }
}

impl<'a, M: Medium> OptimisticRead<'a, M> {
    /// Looks at both buckets. What it tells counts if this look is steady.
    #[inline(always)]
    pub(super) fn spot(&self, key: Key<'_>) -> Spotted<'a, M> {
        let Some(places) = self.plain_places() else { return Spotted::Unsure };
        let Some(seen) = Beginnings::of(self.medium, places, key) else { return Spotted::Unsure };
        if seen.hits == 0 {
            let is_sure = !seen.metas.iter().any(|meta| meta.is_any_locked()) && seen.are_alike();
            return if is_sure { Spotted::Nothing } else { Spotted::Unsure };
        }
        let spot = seen.first();
        if !spot.meta.is_locked(spot.i) && is_alike(spot.meta.shape(spot.i), seen.shape) {
            Spotted::At(spot)
        } else {
            Spotted::Unsure
        }
    }

    /// The same of the key, if `is_steady` at its end.
    #[inline(always)]
    fn lookup(&self, key: Key<'_>, is_steady: impl Fn() -> bool) -> Lookup {
        match self.spot(key) {
            Spotted::At(spot) if is_item(spot.meta.shape(spot.i)) => {
                let [signature, position] = spot.start();
                let is_it = signature == key.signature && is_steady();
                if is_it { Lookup::Item(Position::from_word(position)) } else { Lookup::Unsure }
            }
            Spotted::At(spot) => {
                let slot = spot.slot();
                if key.may_be_in(&slot) && is_steady() { Lookup::Whole(slot) } else { Lookup::Unsure }
            }
            Spotted::Nothing if is_steady() && self.medium.check_lost_ranges().is_ok() => Lookup::Nothing,
            _ => Lookup::Unsure,
        }
    }
}

/// What a look told, for a caller that asks again whether that still counts.
pub struct Candidate<'a, M> {
    read: OptimisticRead<'a, M>,
    lookup: Lookup,
    led: Led,
}

impl<M: Medium> Candidate<'_, M> {
    /// Where the item lies that the slot names, if one does: to be asked for.
    #[inline(always)]
    pub fn position(&self) -> Option<Position> {
        match self.lookup {
            Lookup::Item(position) => Some(position),
            _ => None,
        }
    }
}

impl BlockHash {
    /// Looks for a key, for [`BlockHash::lookup_candidate`].
    #[inline(always)]
    pub fn candidate<'a, M: Medium>(&'a self, medium: &'a M, key: Key<'_>) -> Candidate<'a, M> {
        let led = self.root().led();
        let read = OptimisticRead::begin(self, medium, key.signature);
        let lookup = read.lookup(key, || true);
        Candidate { read, lookup, led }
    }

    /// As [`BlockHash::lookup`], by a hint of the same key: if nothing changed where it looked, and readers are led by the same, another look
    /// would tell no more.
    #[inline(always)]
    pub fn lookup_candidate<M: Medium>(&self, candidate: &Candidate<'_, M>, key: Key<'_>) -> Lookup {
        let is_same = candidate.read.is_steady() && self.root().led() == candidate.led;
        if is_same { candidate.lookup } else { self.lookup(candidate.read.medium, key) }
    }

    /// Looks for a key. The caller is pinned, as for [`BlockHash::find`], which it asks where this is not sure.
    #[inline(always)]
    pub fn lookup<M: Medium>(&self, medium: &M, key: Key<'_>) -> Lookup {
        let read = OptimisticRead::begin(self, medium, key.signature);
        read.lookup(key, || read.is_steady())
    }

    /// As [`BlockHash::lookup`], with the slot as it is stored. `None`: it takes a search.
    #[inline(always)]
    pub(super) fn try_find<M: Medium, E: From<MediumError>>(
        &self,
        medium: &M,
        key: Key<'_>,
        is_key: &mut impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<Option<Slot>>, E> {
        let read = OptimisticRead::begin(self, medium, key.signature);
        let slot = match read.spot(key) {
            Spotted::At(spot) => Some(spot.slot()).filter(|slot| key.may_be_in(slot)),
            Spotted::Nothing if read.is_steady() && medium.check_lost_ranges().is_ok() => return Ok(Some(None)),
            _ => None,
        };
        let Some(slot) = slot.filter(|_| read.is_steady()) else { return Ok(None) };
        Ok(key.is_in(&slot, is_key)?.then_some(Some(slot)))
    }
}
