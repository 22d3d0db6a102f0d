//! What no search meets: an entry that lies where its key's entry can lie, and that damage hides.
//!
//! A search goes by signatures and overflow bits. A flipped bit of one of them makes a key absent; but the entry stays where
//! it was put: in the home line, the rest of the pair, the stash or the chain of its key. A caller that wants to be sure of an
//! absence asks for the keys of all the items that entries there name, whatever their signatures are.
//!
//! No writer is locked out. An entry's two words are read of one moment (`Entry::steady`). An entry of the right signature that a
//! search can come to was inserted after the search, which has to be repeated, and so has one in a segment that was split.
//!
//! A writer that finds no entry of its key makes one, and the key has two: by the next search the newer one is found, or the older
//! if an overflow bit that was lost is set again, and the older one if the newer is removed. So where reads look into absences writes do,
//! under the pair's lock; where they do not, `check --deep` finds the older entry, and a repair takes one whose signature is damaged last.
//!
//! Not told: an entry whose position word was lost, or bears the mark of a removal; nor one in a batch under way.

use std::iter;
use std::sync::atomic::Ordering;

use pmem::{Medium, Offset, unseal};

use super::PartitionedHash;
use super::check::is_reachable;
use super::layout::{Home, LINE_ENTRY_COUNT, NEXT_BYTES, OverflowPath, entry_lines, slot};
use super::segment::{Entry, chained};
use super::slot::Slot;
use crate::Position;

/// What is to be thought of an absence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// No entry names an item of the key.
    Sure,
    /// Another thread changed the index meanwhile: search again.
    Stale,
    /// The word here is damaged: it hides the key's entry, or may.
    Damaged {
        /// Where the word is.
        at: Offset,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl PartitionedHash {
    /// Looks into an absence of `signature` that [`PartitionedHash::find`] found. `is_of_key` tells whether the item at a
    /// position, which may be any word, is one of the key. The caller is pinned since before it searched.
    #[cold]
    #[inline(never)]
    pub fn absence<M: Medium>(
        &self,
        medium: &M,
        signature: u64,
        mut is_of_key: impl FnMut(Position) -> bool,
    ) -> Absence {
        let segment = self.root().offset(self.geometry, signature);
        for slot in slots(medium, segment, signature) {
            medium.prefetch_line(Position::from_word(medium.load(slot.position, Ordering::Relaxed)).offset());
        }
        let mut named = slots(medium, segment, signature).map(|slot| Entry::steady(medium, slot));
        let astray = named.find(|entry| is_of_key_at(entry, &mut is_of_key));
        let seen = match astray {
            Some(entry) => judged(medium, segment, signature, &entry),
            None => broken_chain(medium, segment).map_or(Absence::Sure, |at| Absence::Damaged {
                at,
                what: "the word that names a chained segment is damaged",
            }),
        };
        if self.root().offset(self.geometry, signature) == segment { seen } else { Absence::Stale }
    }
}

fn is_of_key_at(entry: &Entry, is_of_key: &mut impl FnMut(Position) -> bool) -> bool {
    entry.position.is_live() && !entry.position.is_in_batch() && is_of_key(entry.position)
}

/// What it means that `entry`, which the search did not find, names the key's item.
fn judged<M: Medium>(medium: &M, segment: Offset, signature: u64, entry: &Entry) -> Absence {
    let Entry { slot, signature: found, .. } = *entry;
    if found != signature {
        return Absence::Damaged { at: slot.signature, what: "an entry's signature is not that of its key" };
    }
    if is_reachable(medium, segment, entry) {
        return Absence::Stale;
    }
    Absence::Damaged { at: slot.position, what: "an entry lies where no search comes" }
}

/// Every slot that an entry of `signature` can be in.
fn slots<M: Medium>(medium: &M, segment: Offset, signature: u64) -> impl Iterator<Item = Slot> {
    let home = Home::of(signature);
    let ways = [OverflowPath::Bucket, OverflowPath::Partner, OverflowPath::Further]
        .into_iter()
        .flat_map(move |way| home.lines(way, segment));
    let chain = chain(medium, segment).skip(1).flat_map(entry_lines);
    let lines = iter::once(home.offset(segment)).chain(ways).chain(chain);
    lines.flat_map(|line| (0..LINE_ENTRY_COUNT).map(move |i| slot(line, i)))
}

fn chain<M: Medium>(medium: &M, segment: Offset) -> impl Iterator<Item = Offset> {
    iter::successors(Some(segment), move |&segment| chained(medium, segment))
}

/// The last word of the chain, if it is no word.
fn broken_chain<M: Medium>(medium: &M, segment: Offset) -> Option<Offset> {
    let last = chain(medium, segment).last()?.plus(NEXT_BYTES);
    let word = medium.load(last, Ordering::Acquire);
    (word != 0 && unseal(word).is_none()).then_some(last)
}
