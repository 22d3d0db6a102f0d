//! The free slots of all chunks as words, for the clean image.
//!
//! Each chunk of slots and each extent in use, in the order of units, has a word with the first unit (24 bits) and,
//! from bit 32 on, the number of words that follow. For a chunk of slots these hold one bit for each slot, set if the
//! slot is free. Free runs need no words: units in neither kind of chunk are free.

use pmem::Dram;

use crate::runs::Run;
use crate::slot_kind::Geometry;
use crate::sweep::Sweep;
use crate::table::Tag;

const COUNT_SHIFT: u32 = 32;

/// A chunk in the words: its first unit and its bitmap.
type Listed<'a> = (u32, &'a [u64]);

/// Iterates over the chunks in the words. It stops at malformed words and leaves them in `words`.
pub(crate) struct ListedChunks<'a> {
    words: &'a [u64],
}

impl<'a> ListedChunks<'a> {
    pub(crate) fn new(words: &'a [u64]) -> ListedChunks<'a> {
        ListedChunks { words }
    }
}

impl<'a> Iterator for ListedChunks<'a> {
    type Item = Listed<'a>;

    fn next(&mut self) -> Option<Listed<'a>> {
        let (&head, rest) = self.words.split_first()?;
        let (free, rest) = rest.split_at_checked((head >> COUNT_SHIFT) as usize)?;
        self.words = rest;
        Some((head as u32, free))
    }
}

impl<D: Dram> Sweep<'_, D> {
    /// Calls `each` with all words. The sweep must have ended, no thread reserves or frees during the call, and none
    /// has since the lanes were emptied ([`Heap::empty_lanes`](crate::Heap::empty_lanes)). Exception: extents.
    pub fn free_words(&self, each: &mut dyn FnMut(u64)) {
        self.chunks().table().each_chunk(self.chunks().supply().mark(), |unit, tag, _| {
            let slab = self.chunks().table().at(unit).slab().filter(|_| tag.slot_kind().is_some());
            if let Some(slab) = slab {
                each(u64::from(unit) | u64::from(slab.geometry().word_count()) << COUNT_SHIFT);
                slab.free_bits().for_each(&mut *each);
            } else if tag.is_extent() {
                each(u64::from(unit));
            }
        });
    }

    /// Returns true if the words fit this heap's chunks one by one. The heap has not been swept yet.
    pub fn fits_free_words(&self, words: &[u64]) -> bool {
        let (mut listed, mut fits) = (ListedChunks::new(words), true);
        self.each_with_listed(&mut listed, |_, tag, _, listed| {
            fits &= match (tag.slot_kind(), listed) {
                (Some((slot_kind, _)), Some(free)) => fits_slot_kind(slot_kind.geometry(), free),
                (Some(_), None) => false,
                (None, Some(free)) => tag.is_extent() && free.is_empty(),
                (None, None) => true,
            };
        });
        fits && listed.words.is_empty()
    }

    /// Uses the words, which fit, instead of a sweep: all free space is known afterwards. Stores nothing. No other
    /// thread uses the heap during the call.
    pub fn adopt_free_words(&self, words: &[u64]) {
        let mut space = self.chunks().lock();
        self.each_with_listed(&mut ListedChunks::new(words), |unit, tag, units, listed| match listed {
            Some(free) if tag.slot_kind().is_some() => {
                self.chunks().table().at(unit).slab().into_iter().for_each(|slab| {
                    slab.adopt_free(free);
                    _ = space.list_if_roomy(slab);
                })
            }
            Some(_) => _ = self.chunks().table().at(unit).lower(Tag::UNSWEPT),
            None => space.runs.insert(self.chunks().table(), Run { unit, units, space: Tag::HOLED.with(Tag::SPACED) }),
        });
        self.chunks().note(&space);
        self.end();
    }

    /// Calls `each` with every chunk that existed at open, and with its words if it is listed.
    fn each_with_listed(&self, listed: &mut ListedChunks<'_>, mut each: impl FnMut(u32, Tag, u32, Option<&[u64]>)) {
        let mut words_before = listed.words;
        let mut next = listed.next();
        self.each_unswept(|unit, tag, units| {
            let here = next.filter(|&(listed_unit, _)| listed_unit == unit);
            each(unit, tag, units, here.map(|(_, free)| free));
            if here.is_some() {
                words_before = listed.words;
                next = listed.next();
            }
        });
        // Words that no chunk has used are left.
        listed.words = words_before;
    }
}

fn fits_slot_kind(geometry: &Geometry, free: &[u64]) -> bool {
    let is_within = |(word, bits): (u32, &u64)| bits & !geometry.word_mask(word) == 0;
    free.len() == geometry.word_count() as usize && (0..).zip(free).all(is_within)
}
