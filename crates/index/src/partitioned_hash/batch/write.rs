//! Carrying out a batch: steps 2 to 7.

use std::collections::HashSet;

use heap::{BatchState, BatchWord, HeapError, Place};
use pmem::{Dram, Level, Medium, MediumError, Offset, Ticket, Waited};

use super::chosen::Chosen;
use super::{Active, Change, Turn, finish, now, record};
use crate::Position;
use crate::canary;
use crate::partitioned_hash::Slot;
use crate::partitioned_hash::layout::{Home, PAIR_COUNT, SEGMENT_ENTRY_COUNT, Way};
use crate::partitioned_hash::locked::LockedHome;
use crate::partitioned_hash::ops::mark_unlinked;
use crate::partitioned_hash::search::Found;
use crate::partitioned_hash::segment::Segment;
use crate::partitioned_hash::{Context, Garbage, PartitionedHash, Sight, Table};
use crate::shared::Locked;

/// The pairs of a batch's keys, locked, and what is to be done to their entries. The caller is pinned.
pub struct Batch<'a, M, D: Dram> {
    index: &'a PartitionedHash,
    cx: Context<'a, M, D>,
    changes: Vec<Change>,
    /// Signatures of the changes: entries that were free get theirs.
    signatures: Vec<u64>,
    chosen: Chosen,
    /// Signatures whose entries lie outside their home lines, and the ways that lead there.
    ways: Vec<(u64, Way)>,
    full: HashSet<Offset>,
    crowded: Vec<(u64, Offset)>,
    stashes: Vec<(Offset, Locked<'a>)>,
    pairs: Vec<Locked<'a>>,
}

/// So many keys ahead lines are asked for: as many as a core has misses in flight.
const AHEAD_COUNT: usize = 12;
/// So many of a batch's keys in one segment are worth a look whether they have room there.
const MANY_IN_SEGMENT: usize = SEGMENT_ENTRY_COUNT as usize / 16;
/// A segment that would hold more is split ahead: splits come at three quarters, as for single keys.
const SPLIT_AHEAD_ENTRY_COUNT: u64 = SEGMENT_ENTRY_COUNT * 3 / 4;

/// All segments without room for their part of a batch, which is not carried out.
#[derive(Clone, Debug)]
#[must_use]
pub struct Full(HashSet<Offset>);

/// A batch that took place.
#[must_use]
pub struct Finished {
    /// When the batch is durable; nobody has waited for a disk. An error if the medium failed.
    pub durable: Result<Ticket, MediumError>,
    /// Signatures, and segments of theirs that should be split: their stashes fill up.
    pub crowded: Vec<(u64, Offset)>,
}

impl PartitionedHash {
    /// Waits until fewer than sixteen batches are under way. The caller holds no lock.
    pub fn batch_turn(&self) -> Turn<'_> {
        self.batches.turn()
    }

    /// Locks the pairs of all `signatures`, which are sorted, for a batch (step 2). The caller is pinned until the batch is
    /// finished or dropped, and holds no bucket.
    pub fn lock_batch<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>, signatures: &[u64]) -> Batch<'a, M, D> {
        let (mut pairs, mut rest) = (Vec::with_capacity(signatures.len()), signatures);
        while let Some(&first) = rest.first() {
            if let Some(&ahead) = rest.get(AHEAD_COUNT) {
                self.aim(cx.medium, ahead);
            }
            let segment = self.root().segment(self.geometry, first);
            let (held, count) = (pairs.len(), self.count_in(segment, rest));
            lock_pairs(segment, &rest[..count], &mut pairs);
            if segment.is_dead() {
                // Split or cleared meanwhile: what took its place comes at the same place in the order.
                pairs.truncate(held);
                continue;
            }
            segment.make_durable(cx.medium);
            rest = &rest[count..];
        }
        Batch {
            index: self,
            cx,
            changes: Vec::with_capacity(signatures.len()),
            signatures: Vec::with_capacity(signatures.len()),
            chosen: Chosen::default(),
            ways: Vec::new(),
            full: HashSet::new(),
            crowded: Vec::new(),
            stashes: Vec::new(),
            pairs,
        }
    }

    /// Makes room for a batch of these signatures, which are sorted; it is carried out anew then. Where many of them go to one
    /// segment that segment is split ahead, as if their keys were new: else a large batch would start over for each. The
    /// caller is pinned and holds no bucket.
    ///
    /// # Errors
    /// The allocator's, and nothing has changed but that.
    pub fn split_for_batch<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        Full(full): Full,
        signatures: &[u64],
    ) -> Result<(), HeapError> {
        let mut rest = signatures;
        while let Some(&first) = rest.first() {
            let segment = self.root().segment(self.geometry, first);
            let (offset, count) = (segment.offset(), self.count_in(segment, rest));
            let will_be_full = segment.entry_count() + count as u64 > SPLIT_AHEAD_ENTRY_COUNT;
            if full.contains(&offset) || count >= MANY_IN_SEGMENT && will_be_full {
                self.split_for(cx, &rest[..count], offset)?;
                if self.root().offset(self.geometry, first) != offset {
                    continue;
                }
            }
            rest = &rest[count..];
        }
        Ok(())
    }

    /// How many of these signatures, the first of which is the segment's, belong to it; they are sorted.
    fn count_in(&self, segment: &Segment, signatures: &[u64]) -> usize {
        let last = self.geometry.last_alike(signatures[0], segment.depth());
        let is_in_it = |&signature: &u64| signature <= last;
        // Most batches have one key of a segment.
        if signatures.get(1).is_some_and(is_in_it) { signatures.partition_point(is_in_it) } else { 1 }
    }
}

/// Locks the pairs of these signatures, which are all the segment's, in ascending order.
fn lock_pairs<'a>(segment: &'a Segment, signatures: &[u64], locked: &mut Vec<Locked<'a>>) {
    let mut pairs = signatures.iter().fold(0u64, |pairs, &signature| pairs | 1 << Home::of(signature).pair);
    while pairs != 0 {
        locked.push(segment.lock_pair(pairs.trailing_zeros().into()));
        pairs &= pairs - 1;
    }
}

const _: () = assert!(PAIR_COUNT <= u64::BITS as u64);

impl<'a, M: Medium, D: Dram> Batch<'a, M, D> {
    /// As [`PartitionedHash::find`], under the lock.
    ///
    /// # Errors
    /// The visitor's.
    pub fn find<R, E: From<MediumError>>(
        &self,
        signature: u64,
        visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.home(signature).find(visit)
    }

    /// As [`Bucket::glance`](crate::partitioned_hash::Bucket::glance).
    #[inline]
    pub fn glance(&self, signature: u64) -> Sight {
        self.home(signature).glance()
    }

    /// The position that a look for `signature` will probably find, for its item to be asked for.
    #[inline]
    pub fn hint(&self, signature: u64) -> Option<Position> {
        Some(self.index.hint(self.cx.medium, self.home(signature).line(), signature)?.position)
    }

    /// Notes that `position`, whose item was flushed, gets an entry, or that there is no room for one: see
    /// [`Batch::has_room`]. The key has none yet. Keys come in the order of their signatures.
    pub fn insert(&mut self, signature: u64, position: Position) {
        let home = self.home(signature);
        let segment = home.segment();
        let mut room = home.room(|slot| self.is_free(&home, slot));
        if room.is_none() {
            self.lock_stash(segment);
            let Some((further, is_crowded)) = home.room_further(|slot| self.is_free(&home, slot)) else {
                _ = self.full.insert(segment.offset());
                return;
            };
            self.crowded.extend(is_crowded.then_some((signature, segment.offset())));
            room = Some(further);
        }
        let room = room.expect("it was found");
        if self.cx.medium.breaks(canary::WAYS_MARKED_EARLY) {
            home.mark_way(room.way);
        }
        self.ways.extend(room.way.map(|way| (signature, way)));
        self.chosen.insert(segment.offset(), room.slot);
        self.note(signature, Change { slot: room.slot, old: Position::EMPTY, new: position.item() });
    }

    /// Whether there was room for all that was noted.
    ///
    /// # Errors
    /// [`Full`]: drop the batch, make room ([`PartitionedHash::split_for_batch`]) and start over.
    pub fn has_room(&mut self) -> Result<(), Full> {
        if self.full.is_empty() { Ok(()) } else { Err(Full(std::mem::take(&mut self.full))) }
    }

    /// Notes that `position`, whose item was flushed, takes the place of what was found.
    pub fn replace<R>(&mut self, signature: u64, found: &Found<R>, position: Position) {
        self.note(signature, Change { slot: found.slot, old: found.position.item(), new: position.item() });
    }

    /// Notes that what was found is deleted.
    pub fn remove<R>(&mut self, signature: u64, found: &Found<R>) {
        self.note(signature, Change { slot: found.slot, old: found.position.item(), new: Position::EMPTY });
    }

    /// Steps 3 to 7: the changes happen, all at once. The record, for which room of
    /// [`record_bytes`](super::record::record_bytes) is at `record`, is retired.
    pub fn commit(self, turn: &Turn<'_>, record: Place) -> Finished {
        let medium = self.cx.medium;
        for &(signature, way) in &self.ways {
            self.home(signature).mark_way(Some(way));
        }
        // SAFETY: the room is the caller's alone.
        unsafe { record::write(medium, record.offset, &self.changes) };
        if !medium.breaks(canary::BATCH_BEFORE_RECORD) {
            medium.order();
        }
        let word = |state| BatchWord { record: record.offset, state };
        word(BatchState::Prepared).store(medium, turn.number);
        medium.order();
        let batches = &self.index.batches;
        let active = batches.link(Active::new(turn.number, record.offset, &self.changes));
        self.publish();
        word(BatchState::Committed).store(medium, turn.number);
        let ticket = medium.commit(Level::Strongest);
        active.note_committed(ticket);
        let waited = medium.acknowledge_now(ticket);
        self.count_and_unlink();
        if waited == Ok(Waited::Deferred) && !medium.breaks(canary::BATCH_SETTLED_EARLY) {
            self.publish_outcomes();
        }
        finish(medium, turn.number, &self.changes, BatchState::Committed, canary::BATCH_FORGOTTEN_EARLY);
        let active = batches.unlink(turn.number);
        let Batch { cx, crowded, stashes, pairs, .. } = self;
        drop((stashes, pairs));
        cx.retire(Garbage::Table(Table::new(active)));
        cx.retire(Garbage::Place(record));
        Finished { durable: waited.map(|_| ticket), crowded }
    }

    /// Step 4.
    fn publish(&self) {
        let medium = self.cx.medium;
        for (change, &signature) in self.changes.iter().zip(&self.signatures) {
            let mut word = change.marked();
            if medium.breaks(canary::HALF_BATCH) {
                word = word.out_of_batch();
            }
            let signature = change.old.is_empty().then_some(signature);
            change.slot.publish(medium, signature, word.in_place_of(now(medium, change.slot)));
        }
        if !medium.breaks(canary::BATCH_BEFORE_ENTRIES) {
            medium.order();
        }
    }

    /// Step 6 where the batch is not durable yet: FRESH takes the place of the mark, and stays.
    fn publish_outcomes(&self) {
        let medium = self.cx.medium;
        for change in &self.changes {
            let outcome = change.marked().out_of_batch().fresh();
            change.slot.publish(medium, None, outcome.in_place_of(now(medium, change.slot)));
        }
    }

    /// Counts entries, and keeps the sweep from what it will not meet any more. Under the locks.
    fn count_and_unlink(&self) {
        let mut more = 0;
        for (change, &signature) in self.changes.iter().zip(&self.signatures) {
            let by = i16::from(change.old.is_empty()) - i16::from(change.new.is_empty());
            if by != 0 {
                let home = self.home(signature);
                home.segment().count(home.pair(), by);
                more += i64::from(by);
            }
            if !change.old.is_empty() {
                mark_unlinked(self.cx.heap, change.old);
            }
        }
        self.index.root().tally.add(more);
    }

    fn home(&self, signature: u64) -> LockedHome<'a, M> {
        let segment = self.index.root().segment(self.index.geometry, signature);
        LockedHome::new(self.cx.medium, &self.index.batches, segment, signature)
    }

    fn is_free(&self, home: &LockedHome<'_, M>, slot: Slot) -> bool {
        home.is_free(slot) && !self.chosen.has(home.segment().offset(), slot)
    }

    /// Once, and until the batch is over: entries that were chosen there stay free until they are published.
    fn lock_stash(&mut self, segment: &'a Segment) {
        if self.stashes.last().is_none_or(|(locked, _)| *locked != segment.offset()) {
            self.stashes.push((segment.offset(), segment.lock_stash()));
        }
    }

    fn note(&mut self, signature: u64, change: Change) {
        self.changes.push(change);
        self.signatures.push(signature);
    }
}
