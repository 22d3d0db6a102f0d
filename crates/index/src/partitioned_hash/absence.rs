//! Finds entries that no search reaches: an entry at a place where its key's entry can be, hidden by damage.
//!
//! A search follows signatures and overflow bits. If one of these bits flips, the key seems absent, although its
//! entry is still in the home line, the rest of the pair, the stash or the chain of the key. A caller that must be
//! sure of an absence therefore checks the keys of all items that entries in these places name, whatever the
//! signatures of the entries are.
//!
//! This locks out no writer. The two words of an entry are read consistently (`Entry::steady`). An entry that has
//! the right signature and that a search reaches was inserted after the caller's search, which must be repeated.
//! The same holds if the segment was split.
//!
//! A writer that finds no entry of its key inserts one, and the key then has two entries. Searches find the newer
//! one, or the older one after a lost overflow bit is set again or the newer entry is removed. So in stores whose
//! reads verify absences, writes verify them also, under the pair's lock. In other stores, `check --deep` finds the
//! older entry, and a repair considers entries with a damaged signature last.
//!
//! Not detected: an entry whose position word was lost or bears the mark of a removal, and an entry of a batch in
//! progress.

use std::iter;
use std::sync::atomic::Ordering;

use pmem::{Medium, Offset, unseal};

use super::check::is_reachable;
use super::layout::{Home, LINE_ENTRY_COUNT, NEXT_BYTES, OverflowPath, entry_lines, slot};
use super::segment::{Entry, chained};
use super::slot::Slot;
use crate::Position;

/// The verdict on an absence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// No entry names an item of the key.
    Sure,
    /// Another thread changed the index; search again.
    Stale,
    /// The word at this place is damaged and hides the key's entry, or may hide it.
    Damaged {
        /// The place of the word.
        at: Offset,
        /// A description of the damage.
        what: &'static str,
    },
}

/// Searches for the key's entry in all places of the segment where it can be; the caller's search did not find it.
pub(super) fn verdict<M: Medium>(
    medium: &M,
    segment: Offset,
    signature: u64,
    mut is_of_key: impl FnMut(Position) -> bool,
) -> Absence {
    for slot in slots(medium, segment, signature) {
        medium.prefetch_line(Position::from_word(medium.load(slot.position, Ordering::Relaxed)).offset());
    }
    let mut named = slots(medium, segment, signature).map(|slot| Entry::steady(medium, slot));
    let astray = named.find(|entry| is_of_key_at(entry, &mut is_of_key));
    match astray {
        Some(entry) => judged(medium, segment, signature, &entry),
        None => broken_chain(medium, segment).map_or(Absence::Sure, |at| Absence::Damaged {
            at,
            what: "the word that names a chained segment is damaged",
        }),
    }
}

fn is_of_key_at(entry: &Entry, is_of_key: &mut impl FnMut(Position) -> bool) -> bool {
    entry.position.is_live() && !entry.position.is_in_batch() && is_of_key(entry.position)
}

/// Returns the verdict for `entry`, which names the key's item although the search did not find it.
fn judged<M: Medium>(medium: &M, segment: Offset, signature: u64, entry: &Entry) -> Absence {
    let Entry { slot, signature: found, .. } = *entry;
    if found != signature {
        return Absence::Damaged { at: slot.signature, what: "an entry's signature is not that of its key" };
    }
    if is_reachable(medium, segment, entry) {
        return Absence::Stale;
    }
    Absence::Damaged { at: slot.position, what: "an entry is at a place that no search reaches" }
}

/// Returns every slot that an entry of `signature` can occupy.
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

/// Returns the place of the chain's last word if that word is damaged.
fn broken_chain<M: Medium>(medium: &M, segment: Offset) -> Option<Offset> {
    let last = chain(medium, segment).last()?.plus(NEXT_BYTES);
    let word = medium.load(last, Ordering::Acquire);
    (word != 0 && unseal(word).is_none()).then_some(last)
}
