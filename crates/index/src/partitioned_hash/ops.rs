//! Finding, inserting, replacing and removing one entry.
//!
//! | operation | steps | a crash after each leaves |
//! |---|---|---|
//! | insert | 1 (a full home line only) overflow bit, flush | nothing, or the bit: searches look further, find nothing |
//! |        |   the item and the bit are ordered before the entry | |
//! |        | 2 signature, position with FRESH, write-back | the entry or not; its item is durable either way |
//! |        | 3 commit, unlock, wait | the entry |
//! |        | 4 FRESH off, not flushed | the entry; recovery does not look at FRESH |
//! | replace | 2 to 4, with the position alone | the old item or the new one |
//! | remove | 2 to 4, with the old position marked DELETED | the item, or a mark that reads as absent |
//! |        | 5 position 0, not flushed | as before; only now may the slot be filled again |
//!
//! Readers may settle a word first, and a neighbour's insert may add its line's overflow bit to it: steps 4 and 5 go by
//! the item that the word names. A word that names another one, or has lost the mark, leaves them nothing to do.
//!
//! The order before step 2 comes after the search: `docs/decisions/0010-items-are-ordered-after-the-search.md`.

use std::sync::atomic::Ordering;
use std::thread;

use heap::Heap;
use pmem::{Canary, Dram, Level, Medium, MediumError, Offset, Slot, Ticket};

use super::due::NEVER;
use super::image::{overflow_word, room};
use super::layout::{Home, Way, entry_lines, slot};
use super::segment::{RawLock, Segment, chained};
use super::split::crowded_from_line;
use super::{Context, PartitionedHash};
use crate::Position;

/// An entry that a search found.
#[derive(Clone, Copy, Debug)]
pub struct Found<R> {
    /// Where it is.
    pub slot: Slot,
    /// Its word, settled.
    pub position: Position,
    /// What the visitor made of it.
    pub value: R,
}

impl PartitionedHash {
    /// Asks the cache for the home line of `signature`.
    #[inline(always)]
    pub fn prefetch<M: Medium>(&self, medium: &M, signature: u64) {
        medium.prefetch(Home::of(signature).offset(self.root().offset(self.geometry, signature)));
    }

    /// Asks the cache for the locks of the segment of `signature`.
    #[inline(always)]
    pub fn prefetch_locks(&self, signature: u64) {
        pmem::arch::prefetch(std::ptr::from_ref(self.root().segment(self.geometry, signature)).cast());
    }

    /// The first entry of the home line that has `signature`: where an item probably lies, to be prefetched.
    #[inline(always)]
    pub fn hint<M: Medium>(&self, medium: &M, signature: u64) -> Option<Position> {
        let line = Home::of(signature).offset(self.root().offset(self.geometry, signature));
        let hits = medium.match4(line, signature);
        let first = slot(line, u64::from(hits.trailing_zeros()) & 3);
        (hits != 0).then(|| Position::from_word(medium.load(first.position, Ordering::Relaxed)))
    }

    /// Shows the live positions that have `signature` to `visit` until it answers with a value.
    ///
    /// The caller is pinned from before this call until its last use of what `visit` saw.
    #[inline(always)]
    pub fn find<M: Medium, R, E: From<MediumError>>(
        &self,
        medium: &M,
        signature: u64,
        mut visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<R>, E> {
        let mut segment = self.root().offset(self.geometry, signature);
        loop {
            if let Some(found) = search(medium, segment, signature, &mut visit)? {
                return Ok(Some(found.value));
            }
            // A split may have moved the key to where an insert then put it: 'absent' holds only if none happened.
            let now = self.root().offset(self.geometry, signature);
            if now == segment {
                return Ok(None);
            }
            segment = now;
        }
    }

    /// Locks the pair of `signature` for a writer, who is pinned until the bucket is dropped.
    #[inline]
    pub fn lock<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>, signature: u64) -> Bucket<'a, M, D> {
        let home = Home::of(signature);
        loop {
            let segment = self.root().segment(self.geometry, signature);
            let lock = segment.lock_pair(home.pair);
            if !segment.is_dead() {
                segment.make_durable(cx.medium);
                let (medium, heap) = (cx.medium, cx.heap);
                return Bucket {
                    medium,
                    heap,
                    segment,
                    signature,
                    home,
                    is_one_of_many: false,
                    due: NEVER,
                    index: self,
                    _lock: lock,
                };
            }
            drop(lock);
            thread::yield_now();
        }
    }
}

/// Searches one segment along the ways that the home line's bits allow.
#[inline(always)]
fn search<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    segment: Offset,
    signature: u64,
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    let home = Home::of(signature);
    let line = home.offset(segment);
    if let Some(found) = search_line(medium, line, signature, visit)? {
        return Ok(Some(found));
    }
    let marks = [Way::Bucket, Way::Partner, Way::Further].map(|way| has_way(medium, home, way, segment));
    if marks == [false; 3] {
        return Ok(None);
    }
    search_overflow(medium, segment, signature, marks, visit)
}

/// True if some entry of this home was put somewhere along `way`.
#[inline(always)]
pub(super) fn has_way<M: Medium>(medium: &M, home: Home, way: Way, segment: Offset) -> bool {
    Position::from_word(medium.load(overflow_word(home, way, segment), Ordering::Acquire)).has_overflow()
}

#[inline(never)]
fn search_overflow<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    segment: Offset,
    signature: u64,
    marks: [bool; 3],
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    let home = Home::of(signature);
    for (way, _) in [Way::Bucket, Way::Partner, Way::Further].into_iter().zip(marks).filter(|(_, marked)| *marked) {
        for line in home.lines(way, segment) {
            if let Some(found) = search_line(medium, line, signature, visit)? {
                return Ok(Some(found));
            }
        }
    }
    let mut chain = chained(medium, segment).filter(|_| marks[Way::Further as usize]);
    while let Some(segment) = chain {
        for line in entry_lines(segment) {
            if let Some(found) = search_line(medium, line, signature, visit)? {
                return Ok(Some(found));
            }
        }
        chain = chained(medium, segment);
    }
    Ok(None)
}

#[inline(always)]
fn search_line<M: Medium, R, E: From<MediumError>>(
    medium: &M,
    line: Offset,
    signature: u64,
    visit: &mut impl FnMut(Position) -> Result<Option<R>, E>,
) -> Result<Option<Found<R>>, E> {
    let mut hits = medium.match4(line, signature);
    while hits != 0 {
        let slot = slot(line, u64::from(hits.trailing_zeros()));
        hits &= hits - 1;
        let mut position = Position::from_word(medium.load(slot.position, Ordering::Acquire));
        if position.is_fresh() {
            position = settle(medium, slot, position)?;
        }
        if position.is_live()
            && let Some(value) = visit(position)?
        {
            return Ok(Some(Found { slot, position, value }));
        }
    }
    Ok(None)
}

/// Makes a FRESH word durable before anyone acts on it, and takes the mark away.
#[cold]
#[inline(never)]
pub(super) fn settle<M: Medium>(medium: &M, slot: Slot, seen: Position) -> Result<Position, MediumError> {
    let mut position = seen;
    while position.is_fresh() && medium.is_writable() && !medium.breaks(Canary::UnsettledRead) {
        medium.flush(slot.position.span(8));
        let ticket = medium.commit(Level::Strongest);
        medium.wait(ticket)?;
        position = match medium.compare_exchange(slot.position, position.word(), position.settled().word()) {
            Ok(_) => position.settled(),
            Err(now) => Position::from_word(now),
        };
    }
    Ok(position.settled())
}

/// A pair of buckets, locked: what a writer of one key works in.
pub struct Bucket<'a, M, D: Dram> {
    medium: &'a M,
    heap: &'a Heap<D>,
    pub(super) segment: &'a Segment,
    signature: u64,
    home: Home,
    is_one_of_many: bool,
    pub(super) due: u64,
    pub(super) index: &'a PartitionedHash,
    _lock: RawLock<'a>,
}

/// An entry that was published and committed, but perhaps not waited for. The bucket is unlocked.
#[derive(Debug)]
#[must_use]
pub struct Published {
    slot: Slot,
    word: Position,
    /// None if others are going to be committed together with it.
    ticket: Option<Ticket>,
    /// The segment should be split: its stash fills up.
    pub crowded: Option<Offset>,
}

impl<'a, M: Medium, D: Dram> Bucket<'a, M, D> {
    /// As [`PartitionedHash::find`], under the lock.
    pub fn find<R, E: From<MediumError>>(
        &self,
        mut visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        search(self.medium, self.segment.offset(), self.signature, &mut visit)
    }

    /// Publishes as one of many: their items were ordered together, and they will be committed together, by whoever settles
    /// them. Until then the mark FRESH stands for all that is missing.
    pub fn as_one_of_many(self) -> Bucket<'a, M, D> {
        Bucket { is_one_of_many: true, ..self }
    }

    /// Enters `position`, whose item was flushed. The key has no entry yet.
    ///
    /// # Errors
    /// The segment's offset if it has no room: split it and try again.
    pub fn insert(self, position: Position) -> Result<Published, Offset> {
        let free = |slot: Slot| self.is_free(slot);
        let segment = self.segment.offset();
        let stash;
        let room = room(self.home, segment, free).filter(|room| room.way != Some(Way::Further));
        let (slot, crowded, is_marked) = match room {
            Some(room) => (room.slot, None, self.mark_way(room.way)),
            None => {
                stash = self.segment.lock_stash();
                let Some((slot, crowded)) = self.room_further(free) else {
                    drop(stash);
                    return Err(segment);
                };
                (slot, crowded.then_some(segment), self.mark_way(Some(Way::Further)))
            }
        };
        self.segment.count(self.home.pair, 1);
        let signature = Some(self.signature);
        if is_marked || !self.is_one_of_many {
            self.order_item();
        }
        Ok(Published { crowded, ..self.publish(slot, signature, position) })
    }

    /// Puts `position`, whose item was flushed, in the place of what was found.
    pub fn replace<R>(self, found: &Found<R>, position: Position) -> Published {
        if !self.is_one_of_many {
            self.order_item();
        }
        self.mark_unlinked(found.position);
        self.publish(found.slot, None, position)
    }

    /// Marks what was found as deleted.
    pub fn remove<R>(self, found: &Found<R>) -> Published {
        self.segment.count(self.home.pair, -1);
        self.mark_unlinked(found.position);
        if self.medium.breaks(Canary::PlainZeroDelete) {
            let word = self.now(found.slot).emptied();
            self.medium.store(found.slot.position, word.word(), Ordering::Release);
            return Published { slot: found.slot, word, ticket: Some(Ticket(0)), crowded: None };
        }
        self.publish(found.slot, None, found.position.deleted())
    }

    /// The sweep, which the bucket's lock keeps away, will not meet the item any more, and yet must not free it: that is
    /// the retirement's to do.
    #[inline(always)]
    fn mark_unlinked(&self, position: Position) {
        if let Some(place) = position.place() {
            self.heap.mark_unlinked(place);
        }
    }

    /// What an entry relies on is durable before it. Only now, so that the write-back ran while the bucket was searched.
    fn order_item(&self) {
        if !self.medium.breaks(Canary::ItemNotOrdered) {
            self.medium.order();
        }
    }

    /// Steps 2 and 3 up to the unlock.
    fn publish(self, slot: Slot, signature: Option<u64>, position: Position) -> Published {
        let word = position.fresh().in_place_of(self.now(slot));
        match signature {
            Some(signature) if self.medium.breaks(Canary::TornPair) => {
                self.medium.publish(slot, None, word.word());
                self.medium.store(slot.signature, signature, Ordering::Relaxed);
                self.medium.flush(slot.signature.span(8));
            }
            _ => self.medium.publish(slot, signature, word.word()),
        }
        self.lower_due();
        let ticket = (!self.is_one_of_many).then(|| self.medium.commit(Level::Strongest));
        Published { slot, word, ticket, crowded: None }
    }

    /// A free entry in stash or chain, and whether a split is due. Under the stash lock.
    fn room_further(&self, free: impl Fn(Slot) -> bool) -> Option<(Slot, bool)> {
        let segment = self.segment.offset();
        let first_free = |line| (0..4).map(|i| slot(line, i)).find(|&slot| free(slot));
        let mut stash = self.home.lines(Way::Further, segment).enumerate();
        if let Some((line, slot)) = stash.find_map(|(i, line)| Some((i as u64, first_free(line)?))) {
            return Some((slot, line >= crowded_from_line(segment)));
        }
        self.segment.chain(self.medium).skip(1).flat_map(entry_lines).find_map(first_free).map(|slot| (slot, false))
    }

    /// Step 1; true if the bit is new, and to be ordered before the entry.
    fn mark_way(&self, way: Option<Way>) -> bool {
        let Some(way) = way else { return false };
        let word = overflow_word(self.home, way, self.segment.offset());
        let mut seen = self.medium.load(word, Ordering::Acquire);
        if Position::from_word(seen).has_overflow() {
            return false;
        }
        // Only a reader that settles the word can be in the way.
        while let Err(now) = self.medium.compare_exchange(word, seen, Position::from_word(seen).overflow().word()) {
            seen = now;
        }
        if !self.medium.breaks(Canary::OverflowBitLate) {
            self.medium.flush(word.span(8));
        }
        true
    }

    fn is_free(&self, slot: Slot) -> bool {
        let position = self.now(slot);
        position.is_empty() || position.is_deleted() && !position.is_fresh()
    }

    fn now(&self, slot: Slot) -> Position {
        Position::from_word(self.medium.load(slot.position, Ordering::Acquire))
    }
}

impl Published {
    /// Waits until the entry is durable, then takes its FRESH mark away (steps 3 to 5). The caller is pinned since before
    /// it published, so that a word that names the same item is the same entry.
    ///
    /// One of many is settled after a commit that its publisher waited for.
    pub fn settle<M: Medium>(self, medium: &M) -> Result<(), MediumError> {
        if let Some(ticket) = self.ticket {
            medium.wait(ticket)?;
        }
        let mut seen = self.word;
        // The word may have changed meanwhile: a reader settled it, or its line got an overflow bit.
        while self.is_unfinished(seen) {
            let done = if seen.is_deleted() { seen.emptied() } else { seen.settled() };
            match medium.compare_exchange(self.slot.position, seen.word(), done.word()) {
                Ok(_) => break,
                Err(now) => seen = Position::from_word(now),
            }
        }
        Ok(())
    }

    /// True if `seen` is still what was published, and has a mark to lose.
    fn is_unfinished(&self, seen: Position) -> bool {
        let is_mine = seen.item() == self.word.item() && seen.is_deleted() == self.word.is_deleted();
        is_mine && (seen.is_fresh() || seen.is_deleted())
    }
}
