//! Carries out a batch: steps 2 to 7.

use std::collections::BTreeSet;
use std::iter;

use heap::{BatchState, BatchWord, HeapError, Place};
use pmem::{Dram, Level, Medium, MediumError, Offset, Taken, Ticket, Waited};

use super::chosen::Chosen;
use super::{Active, Batches, Change, FinishedBatch, Turn, finish, now, record};
use crate::Position;
use crate::canary;
use crate::partitioned_hash::Slot;
use crate::partitioned_hash::layout::{Geometry, Home, OverflowPath, PAIR_COUNT, SEGMENT_ENTRY_COUNT};
use crate::partitioned_hash::locked::LockedHome;
use crate::partitioned_hash::ops::mark_unlinked;
use crate::partitioned_hash::search::Found;
use crate::partitioned_hash::segment::Segment;
use crate::partitioned_hash::split::Splits;
use crate::partitioned_hash::{BatchLookup, Context, Garbage, Target, broken};
use crate::segmented::Segmented;
use crate::segmented::directory::Retired;
use crate::segmented::segments::Segments;
use crate::shared::Locked;

/// The locked pairs of a batch's keys, and the changes to their entries. The caller is pinned.
pub struct Batch<'a, M, D: Dram> {
    index: &'a Segments<Segment>,
    batches: &'a Batches,
    cx: Context<'a, M, D>,
    /// The signatures for which it was locked.
    signatures: &'a [u64],
    /// The segment of each signature.
    segments: Vec<&'a Segment>,
    /// The result of the lookup of each signature.
    lookups: Vec<BatchLookup>,
    changes: Vec<Change>,
    /// True if the number of entries changes.
    counts: bool,
    chosen: Chosen,
    /// The numbers of signatures whose entries are outside their home lines, and the overflow paths to them.
    ways: Vec<(usize, OverflowPath)>,
    full: BTreeSet<Offset>,
    crowded: Vec<(u64, Offset)>,
    stashes: Vec<(Offset, Locked<'a>)>,
    pairs: Vec<Locked<'a>>,
}

/// The number of keys by which prefetches run ahead: as many as a core can have cache misses in flight.
const AHEAD_COUNT: usize = 12;
/// Up to this number, the keys of a batch in one segment are counted one by one.
const FEW_IN_SEGMENT: usize = 8;
/// From this number of keys in one segment, a batch checks whether the segment has space for them.
const MANY_IN_SEGMENT: usize = SEGMENT_ENTRY_COUNT as usize / 16;
/// A segment that would hold more entries is split ahead: at three quarters, as for single keys.
const SPLIT_AHEAD_ENTRY_COUNT: u64 = SEGMENT_ENTRY_COUNT * 3 / 4;

/// All segments that lack space for their part of a batch. The batch was not carried out.
#[derive(Clone, Debug)]
#[must_use]
pub struct Full(BTreeSet<Offset>);

/// A batch that was carried out.
#[must_use]
pub struct Finished {
    /// The point from which on the batch is durable. No thread has waited for a disk.
    pub durable: Ticket,
    /// Signatures, with their segments that should be split because their stashes fill up.
    pub crowded: Vec<(u64, Offset)>,
    /// The changes, in the order in which they were noted.
    pub changes: Vec<Change>,
}

impl Full {
    /// Makes space for a batch of these signatures, which are sorted
    /// ([`super::super::PartitionedHash::split_for_batch`]).
    pub(in crate::partitioned_hash) fn split<M: Medium, D: Dram>(
        self,
        cx: Context<'_, M, D>,
        (segments, splits): (&Segments<Segment>, &Splits),
        signatures: &[u64],
    ) -> Result<(), HeapError> {
        let mut rest = signatures;
        while let Some(&first) = rest.first() {
            let segment = segments.of(first);
            let (offset, count) = (segment.offset(), count_in(segments.geometry(), segment, rest));
            let will_be_full = segment.entry_count() + count as u64 > SPLIT_AHEAD_ENTRY_COUNT;
            if self.0.contains(&offset) || count >= MANY_IN_SEGMENT && will_be_full {
                splits.make_space(cx, segments, &rest[..count], offset)?;
                if segments.offset(first) != offset {
                    continue;
                }
            }
            rest = &rest[count..];
        }
        Ok(())
    }
}

/// Returns how many of these sorted signatures belong to `segment`. The first one does.
fn count_in(geometry: Geometry, segment: &Segment, signatures: &[u64]) -> usize {
    let last = geometry.last_alike(signatures[0], segment.depth());
    let is_in_it = |&signature: &u64| signature <= last;
    // Most batches have few keys in a segment.
    let few = signatures.iter().take(FEW_IN_SEGMENT).take_while(|signature| is_in_it(signature)).count();
    if few == FEW_IN_SEGMENT { few + signatures[few..].partition_point(is_in_it) } else { few }
}

/// Locks the pairs of these signatures, which all belong to the segment, in ascending order.
fn lock_pairs<'a>(segment: &'a Segment, signatures: &[u64], locked: &mut Vec<Locked<'a>>) {
    let mut pairs = signatures.iter().fold(0u64, |pairs, &signature| pairs | 1 << Home::of(signature).pair);
    while pairs != 0 {
        locked.push(segment.lock_pair(pairs.trailing_zeros().into()));
        pairs &= pairs - 1;
    }
}

const _: () = assert!(PAIR_COUNT <= u64::BITS as u64);

impl<'a, M: Medium, D: Dram> Batch<'a, M, D> {
    /// Locks the pairs of all `signatures`, which are sorted, for a batch (step 2).
    pub(in crate::partitioned_hash) fn lock(
        (segments, batches): (&'a Segments<Segment>, &'a Batches),
        cx: Context<'a, M, D>,
        signatures: &'a [u64],
    ) -> Batch<'a, M, D> {
        assert!(u32::try_from(signatures.len()).is_ok(), "a batch's keys are numbered by 32 bits");
        let mut rest = signatures;
        let mut batch = Batch::of(segments, batches, cx, signatures);
        while let Some(&first) = rest.first() {
            if let Some(&ahead) = rest.get(AHEAD_COUNT) {
                Target::prefetched(cx.medium, segments, ahead);
            }
            let segment = segments.of(first);
            let (held, count) = (batch.pairs.len(), count_in(segments.geometry(), segment, rest));
            lock_pairs(segment, &rest[..count], &mut batch.pairs);
            if segment.is_dead() {
                // The segment was split or cleared. Its replacement has the same place in the lock order.
                batch.pairs.truncate(held);
                continue;
            }
            segment.make_durable(cx.medium);
            for &signature in &rest[..count] {
                cx.medium.prefetch_line(Home::of(signature).offset(segment.offset()));
            }
            batch.segments.extend(iter::repeat_n(segment, count));
            // The lines of these keys were prefetched `AHEAD_COUNT` keys ago.
            batch.lookup_first(batch.segments.len().saturating_sub(AHEAD_COUNT));
            rest = &rest[count..];
        }
        batch.lookup_first(signatures.len());
        batch
    }

    /// Creates a batch of these signatures, none of which is locked yet.
    fn of(
        index: &'a Segments<Segment>,
        batches: &'a Batches,
        cx: Context<'a, M, D>,
        signatures: &'a [u64],
    ) -> Batch<'a, M, D> {
        Batch {
            index,
            batches,
            cx,
            signatures,
            segments: Vec::with_capacity(signatures.len()),
            lookups: Vec::with_capacity(signatures.len()),
            changes: Vec::with_capacity(signatures.len()),
            counts: false,
            chosen: Chosen::default(),
            ways: Vec::new(),
            full: BTreeSet::new(),
            crowded: Vec::new(),
            stashes: Vec::new(),
            pairs: Vec::with_capacity(signatures.len()),
        }
    }

    /// Looks up the first `count` signatures, which are locked, in their home lines, unless that was done already.
    /// The results remain valid while the locks are held, except for marks that readers clear.
    #[inline(always)]
    fn lookup_first(&mut self, count: usize) {
        let numbers = self.lookups.len()..count;
        self.lookups.extend(numbers.map(|number| {
            let (segment, signature) = (self.segments[number], self.signatures[number]);
            LockedHome::new(self.cx.medium, self.batches, segment, signature).lookup_for_batch()
        }));
    }

    /// Returns the number of a signature for which the batch was locked. Other methods identify signatures by this
    /// number.
    pub fn number_of(&self, signature: u64) -> usize {
        self.signatures.partition_point(|other| *other < signature)
    }

    /// Like [`super::super::PartitionedHash::find`], under the lock.
    ///
    /// # Errors
    /// Returns the visitor's error.
    pub fn find<R, E: From<MediumError>>(
        &self,
        number: usize,
        visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.home(number).find(visit)
    }

    /// Returns the result of the lookup of each signature, by number.
    #[inline(always)]
    pub fn lookups(&self) -> &[BatchLookup] {
        &self.lookups
    }

    /// Notes that `position`, whose item was flushed, gets an entry. If there is no space for one, records this for
    /// [`Batch::has_space`]. The key must have no entry yet. Keys come in the order of their signatures.
    #[inline(never)]
    pub fn insert(&mut self, number: usize, by: u32, position: Position) {
        let home = self.home(number);
        let segment = home.segment();
        let mut entry = home.free_entry(|slot| self.is_free(&home, slot));
        if entry.is_none() {
            self.lock_stash(segment);
            let Some((further, is_crowded)) = home.free_entry_in_stash(|slot| self.is_free(&home, slot)) else {
                _ = self.full.insert(segment.offset());
                return;
            };
            self.crowded.extend(is_crowded.then_some((home.signature(), segment.offset())));
            entry = Some(further);
        }
        let entry = entry.expect("it was found");
        if self.cx.medium.breaks(canary::WAYS_MARKED_EARLY) {
            home.mark_way(entry.way);
        }
        self.ways.extend(entry.way.map(|way| (number, way)));
        self.chosen.insert(segment.offset(), entry.slot);
        self.counts = true;
        let (at, number) = (entry.slot.position, number as u32);
        self.changes.push(Change { at, number, by, old: Position::EMPTY, new: position.item() });
    }

    /// Returns `Ok` if there was space for all noted entries.
    ///
    /// # Errors
    /// [`Full`]: drop the batch, make space ([`super::super::PartitionedHash::split_for_batch`]) and start over.
    pub fn has_space(&mut self) -> Result<(), Full> {
        if self.full.is_empty() { Ok(()) } else { Err(Full(std::mem::take(&mut self.full))) }
    }

    /// Notes that `position`, whose item was flushed, replaces the found item `old`, whose position word is at
    /// `at`. An empty `position` deletes the entry.
    #[inline(always)]
    pub fn replace(&mut self, number: usize, by: u32, (at, old): (Offset, Position), position: Position) {
        self.counts |= position.is_empty();
        self.changes.push(Change { at, number: number as u32, by, old: old.item(), new: position.item() });
    }

    /// Returns the changes noted so far.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Carries out steps 3 to 7: all changes become visible as one step, and the turn ends. `record` is reserved space
    /// for [`record_bytes`](super::record::record_bytes) bytes; it is retired afterwards.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`] if the medium fails. Then either nothing has happened, or readers of these keys
    /// get this error until the store is opened again.
    pub fn commit(self, turn: Turn<'_>, record: Place) -> Result<Finished, MediumError> {
        let medium = self.cx.medium;
        medium.health()?;
        for &(number, way) in &self.ways {
            self.home(number).mark_way(Some(way));
        }
        // SAFETY: the caller alone uses this space.
        unsafe { record::write(medium, record.offset, &self.changes) };
        medium.order_unless(canary::BATCH_BEFORE_RECORD);
        let word = |state| BatchWord { record: record.offset, state };
        word(BatchState::Prepared).store(medium, turn.number);
        medium.order();
        let batches = self.batches;
        let active = batches.link(Active::new(turn.number, record.offset, &self.changes));
        self.publish()?;
        word(BatchState::Committed).store(medium, turn.number);
        let ticket = medium.commit(Level::Strongest);
        active.note_committed(ticket);
        let waited = match medium.acknowledge_now(ticket) {
            Err(_) if medium.breaks(canary::FAILED_BATCH_FINISHED) => Waited::Durable,
            waited => waited?,
        };
        self.count_and_unlink();
        if waited == Waited::Deferred && !medium.breaks(canary::BATCH_SETTLED_EARLY) {
            self.publish_outcomes()?;
        }
        let active = self.end(turn);
        let Batch { cx, crowded, changes, stashes, pairs, .. } = self;
        drop((stashes, pairs));
        cx.retire(Garbage::Batch(FinishedBatch::new(active)));
        cx.retire(Garbage::of(record));
        Ok(Finished { durable: ticket, crowded, changes })
    }

    /// Carries out step 4.
    fn publish(&self) -> Result<(), MediumError> {
        let medium = self.cx.medium;
        for change in &self.changes {
            let mut word = change.marked();
            if medium.breaks(canary::HALF_BATCH) {
                word = word.out_of_batch();
            }
            let word = word.in_place_of(now(medium, change.at));
            let signature = change.old.is_empty().then(|| self.signatures[change.number as usize]);
            if change.slot().publish(medium, signature, word) == Taken::No {
                return medium.health();
            }
        }
        medium.order_unless(canary::BATCH_BEFORE_ENTRIES);
        Ok(())
    }

    /// Carries out step 6 for a batch that is not durable yet: FRESH replaces the mark BATCH, and stays.
    fn publish_outcomes(&self) -> Result<(), MediumError> {
        let medium = self.cx.medium;
        for change in &self.changes {
            let outcome = change.marked().out_of_batch().fresh();
            if change.slot().publish(medium, None, outcome.in_place_of(now(medium, change.at))) == Taken::No {
                return medium.health();
            }
        }
        Ok(())
    }

    /// Carries out steps 6 and 7, except for the locks. The next batch may use the word as soon as the turn has ended.
    fn end(&self, turn: Turn<'_>) -> Retired<Active> {
        let (medium, number) = (self.cx.medium, turn.number);
        let unlink_and_end = |turn: Turn<'_>| self.batches.unlink(turn.number);
        let finish = || finish(medium, number, &self.changes, BatchState::Committed, canary::BATCH_FORGOTTEN_EARLY);
        if medium.breaks(canary::BATCH_TURN_ENDED_EARLY) {
            return broken::end_turn_first(|| unlink_and_end(turn), finish);
        }
        finish();
        unlink_and_end(turn)
    }

    /// Counts entries, and marks the items that the sweep will not reach any more. The caller holds the locks.
    fn count_and_unlink(&self) {
        let (mut more, is_swept) = (0, self.cx.heap.is_swept());
        if is_swept && !self.counts {
            return;
        }
        for change in &self.changes {
            let by = i16::from(change.old.is_empty()) - i16::from(change.new.is_empty());
            if by != 0 {
                let home = self.home(change.number as usize);
                home.segment().count(home.pair(), by);
                more += i64::from(by);
            }
            if !is_swept && !change.old.is_empty() {
                mark_unlinked(self.cx.heap, change.old);
            }
        }
        self.index.root().counter.add(more);
    }

    #[inline(always)]
    fn home(&self, number: usize) -> LockedHome<'a, M> {
        LockedHome::new(self.cx.medium, self.batches, self.segments[number], self.signatures[number])
    }

    fn is_free(&self, home: &LockedHome<'_, M>, slot: Slot) -> bool {
        home.is_free(slot) && !self.chosen.has(home.segment().offset(), slot)
    }

    /// Locks the segment's stash, once, until the batch is over. Entries that were chosen in it stay free until
    /// they are published.
    fn lock_stash(&mut self, segment: &'a Segment) {
        if self.stashes.last().is_none_or(|(locked, _)| *locked != segment.offset()) {
            self.stashes.push((segment.offset(), segment.lock_stash()));
        }
    }
}
