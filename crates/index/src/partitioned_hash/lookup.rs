//! Optimistic lookups in the home line, which answer most operations.
//!
//! A lookup is sure in two cases: the first entry of the signature is live and has no mark, or there is no such
//! entry and no overflow bit is set in the line. In all other cases it returns `Unsure`, and the caller runs a full
//! search (`find`). A lookup takes no lock and waits for no thread. It does the same as the first step of a search;
//! `find` explains why this suffices to report an absence.

use std::sync::atomic::Ordering;

use pmem::{Dram, Medium, Offset};

use super::layout::{Home, slot, slot_at};
use super::locked::LockedHome;
use super::ops::Bucket;
use super::search::Found;
use super::segment::Segment;
use super::slot::Slot;
use super::{Context, PartitionedHash};
use crate::Position;
use crate::canary;
use crate::segmented::Segmented;
use crate::segmented::directory::{Directories, DirectoryVersion};
use crate::segmented::segments::Segments;

/// The result of a reader's lookup.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The first entry of the signature, live and decided. Its item may belong to another key.
    Entry(Position),
    /// The segment has no entry of the signature.
    Nothing,
    /// A search is needed.
    Unsure,
}

/// The result of a writer's lookup, under the lock of the pair.
#[derive(Clone, Copy, Debug)]
pub enum LockedLookup {
    /// The first entry of the signature, live and decided. Its item may belong to another key.
    Entry(Found<()>),
    /// The segment has no entry of the signature, and this entry of the home line is free.
    Free(Slot),
    /// The segment has no entry of the signature, and the home line is full.
    Full,
    /// A search is needed.
    Unsure,
}

/// The result of a batch's lookup, under the lock of the pair.
#[derive(Clone, Copy, Debug)]
pub enum BatchLookup {
    /// The first entry of the signature, live and decided: the place of its position word, and that word. Its item
    /// may belong to another key.
    Entry(Offset, Position),
    /// The segment has no entry of the signature.
    Nothing,
    /// A search is needed.
    Unsure,
}

/// The place to which a signature leads. The caller stays pinned while it holds the target.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    signature: u64,
    /// The segment for readers, and the home line in it.
    start: Offset,
    line: Offset,
    /// The segment for writers.
    segment: &'a Segment,
}

impl<'a> Target<'a> {
    /// Returns the target of `signature`, and prefetches its home line and its locks.
    #[inline(always)]
    pub(super) fn prefetched<M: Medium>(medium: &M, segments: &'a Segments<Segment>, signature: u64) -> Target<'a> {
        let (start, segment) = segments.both(signature);
        let line = Home::of(signature).offset(start);
        medium.prefetch_line(line);
        segment.prefetch();
        Target { signature, start, line, segment }
    }

    /// Returns the signature.
    #[inline(always)]
    #[must_use]
    pub fn signature(&self) -> u64 {
        self.signature
    }

    /// Returns the home line.
    #[inline(always)]
    #[must_use]
    pub fn line(&self) -> Offset {
        self.line
    }

    /// Prefetches the counter that an insert or a removal changes. Otherwise the store that publishes the entry
    /// would wait for the store that counts it.
    #[inline(always)]
    pub fn prefetch_count(&self) {
        self.segment.prefetch_count(Home::of(self.signature).pair);
    }
}

/// An entry that a lookup of its line found.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The place of its position word.
    at: Offset,
    /// The position in that word.
    pub position: Position,
}

/// The version of the directories that readers use, for a lookup of several keys at a time.
///
/// # Order
/// 1. The route is taken.
/// 2. The route locates the keys' lines, which are prefetched.
/// 3. Each line is looked up, in the order of the keys.
/// 4. The route is compared with the current one ([`PartitionedHash::is_current_route`]).
///
/// If the route is still current, each lookup read a line that readers were directed to at that moment. If not, a
/// split or a `clear` intervened, and a line may have been abandoned in its old state. One lookup may then see a
/// recent write and a later lookup may miss it, so all results are discarded (`segmented/directory.rs`).
#[derive(Debug)]
pub struct Route<'a> {
    led: DirectoryVersion,
    directories: Directories<'a, Segment>,
}

/// The result of reading a home line.
enum Line {
    Entry(Slot, Position),
    /// The line's position words: there is no entry of the signature, and no overflow bit is set.
    Nothing([Position; 4]),
    Unsure,
}

impl PartitionedHash {
    /// Returns the target of `signature`, and prefetches its home line and its locks.
    #[inline(always)]
    pub fn prefetch<M: Medium>(&self, medium: &M, signature: u64) -> Target<'_> {
        Target::prefetched(medium, &self.segments, signature)
    }

    /// Returns the home line of `signature` according to `route`, and prefetches it.
    #[inline(always)]
    pub fn home_line<M: Medium>(&self, medium: &M, route: &Route<'_>, signature: u64) -> Offset {
        let line = Home::of(signature).offset(route.directories.offset(self.segments.geometry(), signature));
        medium.prefetch_line(line);
        line
    }

    /// Returns the first entry of the home line that has the signature. Its item is probably the one sought, so the
    /// caller can prefetch it.
    #[inline(always)]
    pub fn candidate<M: Medium>(&self, medium: &M, line: Offset, signature: u64) -> Option<Candidate> {
        let (hits, position) = medium.match4_behind(line, signature);
        (hits != 0).then(|| Candidate { at: first(line, hits).position, position: Position::from_word(position) })
    }

    /// Returns the current route of readers.
    #[inline(always)]
    pub fn route(&self) -> Route<'_> {
        let root = self.segments.root();
        Route { led: root.led(), directories: root.directories() }
    }

    /// Returns true if readers are still directed by `route`; see [`Route`].
    #[inline(always)]
    pub fn is_current_route<M: Medium>(&self, medium: &M, route: &Route<'_>) -> bool {
        self.segments.root().led() == route.led || medium.breaks(canary::LEAD_NOT_COMPARED)
    }

    /// Looks up `signature`. The caller is pinned as for [`PartitionedHash::find`], which it calls if the result is
    /// `Unsure`.
    #[inline(always)]
    pub fn lookup<M: Medium>(&self, medium: &M, signature: u64) -> Lookup {
        self.lookup_line(medium, Home::of(signature).offset(self.segments.offset(signature)), signature)
    }

    /// Like [`PartitionedHash::lookup`], for a home line that a route located.
    #[inline(always)]
    pub fn lookup_line<M: Medium>(&self, medium: &M, line: Offset, signature: u64) -> Lookup {
        match read_line(medium, line, signature) {
            Line::Entry(_, position) => Lookup::Entry(position),
            Line::Nothing(_) => {
                if !medium.breaks(canary::MISS_NOT_FENCED) {
                    medium.acquire();
                }
                Lookup::Nothing
            }
            Line::Unsure => Lookup::Unsure,
        }
    }

    /// Locks the pair of `target`. Returns `None` if the segment was split or cleared since
    /// ([`PartitionedHash::lock`]).
    #[inline(always)]
    pub fn lock_target<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        target: &Target<'a>,
    ) -> Option<Bucket<'a, M, D>> {
        let lock = target.segment.lock_pair(Home::of(target.signature).pair);
        (!target.segment.is_dead()).then(|| self.bucket(cx, target.segment, lock, target.signature))
    }
}

impl<M: Medium, D: Dram> Bucket<'_, M, D> {
    /// Looks up the signature.
    #[inline(always)]
    pub fn lookup(&self) -> LockedLookup {
        self.home.lookup()
    }

    /// Like [`Bucket::lookup`], but first tries the candidate that was read before the lock was taken. The caller
    /// has been pinned since before it read the candidate. An entry that still names the same item is still the
    /// entry of that item's key. If that is another key, a lookup may find an entry behind it.
    #[inline(always)]
    pub fn lookup_candidate(&self, target: &Target<'_>, candidate: Option<Candidate>) -> LockedLookup {
        match candidate {
            Some(Candidate { at, position })
                if position.is_live_and_decided()
                    && target.start == self.home.segment().offset()
                    && self.home.now(slot_at(at)) == position =>
            {
                LockedLookup::Entry(Found { slot: slot_at(at), position, value: () })
            }
            _ => self.lookup(),
        }
    }
}

impl<M: Medium> LockedHome<'_, M> {
    /// Like [`LockedHome::lookup`], without a free entry.
    #[inline(always)]
    pub(super) fn lookup_for_batch(&self) -> BatchLookup {
        match read_line(self.medium(), self.line(), self.signature()) {
            Line::Entry(slot, position) => BatchLookup::Entry(slot.position, position),
            Line::Nothing(_) => BatchLookup::Nothing,
            Line::Unsure => BatchLookup::Unsure,
        }
    }

    /// Looks up the signature.
    #[inline(always)]
    pub(super) fn lookup(&self) -> LockedLookup {
        let (medium, line) = (self.medium(), self.line());
        match read_line(medium, line, self.signature()) {
            Line::Entry(slot, position) => LockedLookup::Entry(Found { slot, position, value: () }),
            Line::Nothing(positions) => match positions.iter().position(|position| position.is_empty()) {
                Some(free) => LockedLookup::Free(slot(line, free as u64)),
                None => LockedLookup::Full,
            },
            Line::Unsure => LockedLookup::Unsure,
        }
    }
}

/// Returns the first entry of a line whose bit in `hits` is set. It repeats the medium's expression, so that the
/// compiler computes it once.
#[inline(always)]
fn first(line: Offset, hits: u32) -> Slot {
    slot(line, u64::from(hits.trailing_zeros() & 3))
}

#[inline(always)]
fn read_line<M: Medium>(medium: &M, line: Offset, signature: u64) -> Line {
    let (mut hits, behind) = medium.match4_behind(line, signature);
    let mut seen = Position::from_word(behind);
    while hits != 0 {
        if !seen.is_empty() {
            return if seen.is_live_and_decided() { Line::Entry(first(line, hits), seen) } else { Line::Unsure };
        }
        // The entry with this signature was removed.
        hits &= hits - 1;
        if hits != 0 {
            let next = slot(line, hits.trailing_zeros().into());
            seen = Position::from_word(medium.load(next.position, Ordering::Acquire));
        }
    }
    let positions = medium.load4(slot(line, 0).position).map(Position::from_word);
    let ways = positions[..3].iter().fold(0, |ways, position| ways | position.word());
    let leads_out = Position::from_word(ways).has_overflow();
    if leads_out || medium.check_lost_ranges().is_err() { Line::Unsure } else { Line::Nothing(positions) }
}
