//! A look at the home line alone: what most operations come to.
//!
//! It tells where the first entry of the signature is live and bears no mark, and where there is none and no bit leads out of
//! the line. All else is left to a search (`ops`). So a look waits for nobody, and does what a search would have done first;
//! why that is enough to say that a key is absent stands there.

use std::sync::atomic::Ordering;

use pmem::{Dram, Medium, Offset};

use super::find::Found;
use super::layout::{Home, slot, slot_at};
use super::locked::LockedHome;
use super::ops::Bucket;
use super::segment::Segment;
use super::slot::Slot;
use super::{Context, PartitionedHash};
use crate::Position;
use crate::canary;
use crate::segmented::directory::{Directories, Led};

/// What a reader's look tells.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// The first entry of the signature, live and decided. Its item may be another key's.
    Entry(Position),
    /// There is none in the segment.
    Nothing,
    /// It takes a search.
    Unsure,
}

/// What a writer's look tells, under the pair's lock.
#[derive(Clone, Copy, Debug)]
pub enum LockedLookup {
    /// The first entry of the signature, live and decided. Its item may be another key's.
    Entry(Found<()>),
    /// There is none in the segment, and this entry of the home line is free.
    Free(Slot),
    /// There is none in the segment, and the home line is full.
    Full,
    /// It takes a search.
    Unsure,
}

/// What a batch's look tells, under the pair's lock.
#[derive(Clone, Copy, Debug)]
pub enum BatchLookup {
    /// The first entry of the signature, live and decided: where its position word lies, and that. Its item may be another key's.
    Entry(Offset, Position),
    /// There is none in the segment.
    Nothing,
    /// It takes a search.
    Unsure,
}

/// Where a signature leads. The caller is pinned while it has it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    signature: u64,
    /// The segment that readers are led to, and the home line there.
    start: Offset,
    line: Offset,
    /// The segment that writers are led to.
    segment: &'a Segment,
}

impl Target<'_> {
    /// The signature.
    #[inline(always)]
    #[must_use]
    pub fn signature(&self) -> u64 {
        self.signature
    }

    /// The home line.
    #[inline(always)]
    #[must_use]
    pub fn line(&self) -> Offset {
        self.line
    }

    /// Asks for the count that changes with an insert or a removal: the store that publishes waits behind the one that counts.
    #[inline(always)]
    pub fn prefetch_count(&self) {
        self.segment.prefetch_count(Home::of(self.signature).pair);
    }
}

/// An entry that a look at its line found.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Where its position word lies.
    at: Offset,
    /// What it names.
    pub position: Position,
}

/// What readers were led by, where several keys are looked for at a time.
///
/// # Order
/// 1 the lead is taken; 2 the keys' lines are found by it, and asked for; 3 each line is looked at, in the order of the keys; 4 the lead is
/// compared ([`PartitionedHash::is_current_route`]). If readers are led by the same as before, then each look was at a line that they were led
/// to at that moment. Otherwise a split or a `clear` came between, and a line may have been left behind as it was before: then one look may
/// tell of what was written since and a later one not, and none of them counts (`segmented/directory.rs`).
#[derive(Debug)]
pub struct Route<'a> {
    led: Led,
    directories: Directories<'a, Segment>,
}

/// A home line, looked at.
enum Line {
    Entry(Slot, Position),
    /// The line's position words: no entry of the signature, and no way out.
    Nothing([Position; 4]),
    Unsure,
}

impl PartitionedHash {
    /// Where `signature` leads; its home line and its locks are asked for.
    #[inline(always)]
    pub fn prefetch<M: Medium>(&self, medium: &M, signature: u64) -> Target<'_> {
        let (segment_start, segment) = self.root().both(self.geometry, signature);
        let line = Home::of(signature).offset(segment_start);
        medium.prefetch_line(line);
        segment.prefetch();
        Target { signature, start: segment_start, line, segment }
    }

    /// The home line of `signature`, by `route`; it is asked for.
    #[inline(always)]
    pub fn home_line<M: Medium>(&self, medium: &M, route: &Route<'_>, signature: u64) -> Offset {
        let line = Home::of(signature).offset(route.directories.offset(self.geometry, signature));
        medium.prefetch_line(line);
        line
    }

    /// The first entry of the home line that has the signature: where an item probably lies, to be prefetched.
    #[inline(always)]
    pub fn candidate<M: Medium>(&self, medium: &M, line: Offset, signature: u64) -> Option<Candidate> {
        let (hits, position) = medium.match4_behind(line, signature);
        (hits != 0).then(|| Candidate { at: first(line, hits).position, position: Position::from_word(position) })
    }

    /// What readers are led by now.
    #[inline(always)]
    pub fn route(&self) -> Route<'_> {
        let root = self.root();
        Route { led: root.led(), directories: root.directories() }
    }

    /// Whether readers are led by the same as when `route` was taken: see there.
    #[inline(always)]
    pub fn is_current_route<M: Medium>(&self, medium: &M, route: &Route<'_>) -> bool {
        self.root().led() == route.led || medium.breaks(canary::LEAD_NOT_COMPARED)
    }

    /// Looks for `signature`. The caller is pinned as for [`PartitionedHash::find`], which it asks where this is not sure.
    #[inline(always)]
    pub fn lookup<M: Medium>(&self, medium: &M, signature: u64) -> Lookup {
        self.lookup_line(medium, Home::of(signature).offset(self.root().offset(self.geometry, signature)), signature)
    }

    /// As [`PartitionedHash::lookup`], at the home line that a lead led to.
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

    /// Locks the pair that `target` leads to; `None` if the segment was split or cleared meanwhile ([`PartitionedHash::lock`]).
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
    /// Looks for the signature.
    #[inline(always)]
    pub fn lookup(&self) -> LockedLookup {
        self.home.lookup()
    }

    /// As [`Bucket::lookup`], by what a hint told before the lock was taken, for a caller that has been pinned since before the hint. An entry that
    /// names the same item still is the one of that item's key; where it is another key's, a look may find one behind it.
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
    /// As [`LockedHome::lookup`], without a free entry.
    #[inline(always)]
    pub(super) fn lookup_for_batch(&self) -> BatchLookup {
        match read_line(self.medium(), self.line(), self.signature()) {
            Line::Entry(slot, position) => BatchLookup::Entry(slot.position, position),
            Line::Nothing(_) => BatchLookup::Nothing,
            Line::Unsure => BatchLookup::Unsure,
        }
    }

    /// Looks for the signature.
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

/// The first entry of a line of which a bit of `hits` is on. It is found as a medium finds it, so that the compiler does so once.
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
        // The signature of an entry that was removed.
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
