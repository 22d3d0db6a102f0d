//! Inserting, replacing and removing one entry.
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
//! On memory the commit is done when it returns (`Ticket::is_done`), and steps 4 and 5 come before the unlock, by a plain store: only a
//! reader that takes FRESH away changes the word meanwhile, and its exchange then fails, or came to the same. Elsewhere they come after
//! the wait, without the lock.
//!
//! Where a log's writer does not wait itself (`Acknowledge::acknowledge`), steps 4 and 5 are left to the threads that meet the word: a
//! reader takes FRESH away once the log is durable up to where the word was published; a removal's mark is taken away by the next
//! writer that looks for a free entry, under the lock.
//!
//! A log's writer does not wait for a FRESH word found under its lock: the writer's own is behind it in the log.
//!
//! A log that has failed takes no word in (`Taken`): the entry stays as it was, and 3 returns the error. What the word would have
//! replaced is still named then, so nothing is retired once the medium has failed.
//!
//! Readers may settle a word first, and a neighbour's insert may add the line's overflow bit to it: steps 4 and 5 go by
//! the item that the word names. A word that names another one, or has lost the mark, leaves them nothing to do.
//!
//! The order before step 2 comes after the search: `docs/decisions/0009-write-an-item-once-and-fence-after-the-search.md`.

use std::sync::atomic::Ordering;
use std::thread;

use heap::Heap;
use pmem::{Dram, Level, Medium, MediumError, Offset, Taken, Ticket, Waited};

use super::due::NEVER;
use super::find::Found;
use super::layout::Home;
use super::locked::LockedHome;
use super::segment::Segment;
use super::slot::Slot;
use super::{Context, PartitionedHash};
use crate::Position;
use crate::canary;
use crate::shared::Locked;

impl PartitionedHash {
    /// Locks the pair of `signature` for a writer, who is pinned until the bucket is dropped.
    #[inline]
    pub fn lock<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>, signature: u64) -> Bucket<'a, M, D> {
        let home = Home::of(signature);
        loop {
            let segment = self.root().segment(self.geometry, signature);
            let lock = segment.lock_pair(home.pair);
            if !segment.is_dead() {
                return self.bucket(cx, segment, lock, signature);
            }
            drop(lock);
            thread::yield_now();
        }
    }

    /// The pair of `signature` in a live segment, which is locked.
    #[inline(always)]
    pub(super) fn bucket<'a, M: Medium, D: Dram>(
        &'a self,
        cx: Context<'a, M, D>,
        segment: &'a Segment,
        lock: Locked<'a>,
        signature: u64,
    ) -> Bucket<'a, M, D> {
        segment.make_durable(cx.medium);
        let home = LockedHome::new(cx.medium, &self.batches, segment, signature);
        Bucket { home, heap: cx.heap, is_one_of_many: false, due: NEVER, index: self, _lock: lock }
    }
}

/// A pair of buckets, locked: what a writer of one key works in.
pub struct Bucket<'a, M, D: Dram> {
    pub(super) home: LockedHome<'a, M>,
    heap: &'a Heap<D>,
    is_one_of_many: bool,
    pub(super) due: u64,
    pub(super) index: &'a PartitionedHash,
    _lock: Locked<'a>,
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
        visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.home.find(visit)
    }

    /// Publishes as one of many: the items of all were ordered together, and all entries will be committed together, by the caller
    /// that settles them. Until then the mark FRESH stands for all that is missing.
    pub fn in_group(self) -> Bucket<'a, M, D> {
        Bucket { is_one_of_many: true, ..self }
    }

    /// Enters `position`, whose item was flushed. The key has no entry yet.
    ///
    /// # Errors
    /// The segment's offset if it has no room: split it and try again.
    pub fn insert(self, position: Position) -> Result<Published, Offset> {
        let free = |slot: Slot| self.home.is_free(slot);
        let segment = self.home.segment();
        let stash;
        let (room, is_crowded) = match self.home.free_entry(free) {
            Some(room) => (room, false),
            None => {
                stash = segment.lock_stash();
                let Some(room) = self.home.free_entry_in_stash(free) else {
                    drop(stash);
                    return Err(segment.offset());
                };
                room
            }
        };
        let is_marked = self.home.mark_way(room.way);
        self.count(1);
        if is_marked || !self.is_one_of_many {
            self.order_item();
        }
        let (crowded, signature) = (is_crowded.then_some(segment.offset()), Some(self.home.signature()));
        let was = self.home.now(room.slot);
        Ok(Published { crowded, ..self.publish((room.slot, was), signature, position, 1) })
    }

    /// Enters `position`, whose item was flushed, at a free entry of the home line. The key has no entry yet.
    #[inline(always)]
    pub fn insert_at(self, slot: Slot, position: Position) -> Published {
        self.count(1);
        if !self.is_one_of_many {
            self.order_item();
        }
        let (was, signature) = (self.home.now(slot), self.home.signature());
        self.publish((slot, was), Some(signature), position, 1)
    }

    /// Puts `position`, whose item was flushed, in the place of what was found.
    #[inline(always)]
    pub fn replace<R>(self, found: &Found<R>, position: Position) -> Published {
        let was = self.home.now(found.slot);
        self.replace_word((found.slot, was), position)
    }

    /// As [`Bucket::replace`], of what a look found: the word as it is.
    #[inline(always)]
    pub fn replace_found(self, seen: &Found<()>, position: Position) -> Published {
        self.replace_word((seen.slot, seen.position), position)
    }

    #[inline(always)]
    fn replace_word(self, (slot, was): (Slot, Position), position: Position) -> Published {
        if !self.is_one_of_many {
            self.order_item();
        }
        mark_unlinked(self.heap, was);
        self.publish((slot, was), None, position, 0)
    }

    /// Marks what was found as deleted.
    #[inline(always)]
    pub fn remove<R>(self, found: &Found<R>) -> Published {
        let seen = Found { slot: found.slot, position: self.home.now(found.slot), value: () };
        self.remove_found(&seen)
    }

    /// As [`Bucket::remove`], of what a look found: the word as it is.
    #[inline(always)]
    pub fn remove_found(self, found: &Found<()>) -> Published {
        self.count(-1);
        mark_unlinked(self.heap, found.position);
        let medium = self.home.medium();
        if medium.breaks(canary::PLAIN_ZERO_DELETE) {
            let word = self.home.now(found.slot).emptied();
            medium.store(found.slot.position, word.word(), Ordering::Release);
            return Published { slot: found.slot, word, ticket: Some(Ticket(0)), crowded: None };
        }
        self.publish((found.slot, found.position), None, found.position.deleted(), -1)
    }

    /// Counts an entry that comes or goes.
    #[inline(always)]
    fn count(&self, by: i16) {
        self.home.segment().count(self.home.pair(), by);
        self.index.root().tally.add(by.into());
    }

    /// What an entry relies on is durable before it. Only now, so that the write-back ran while the bucket was searched.
    #[inline(always)]
    fn order_item(&self) {
        let medium = self.home.medium();
        if !medium.breaks(canary::ITEM_NOT_ORDERED) {
            medium.order();
        }
    }

    /// Steps 2 and 3 up to the unlock, in place of the word that is there: under the lock a reader that takes FRESH away is all that changes it.
    /// `counted`: entries that were counted for it.
    #[inline(always)]
    fn publish(
        self,
        (slot, was): (Slot, Position),
        signature: Option<u64>,
        position: Position,
        counted: i16,
    ) -> Published {
        let medium = self.home.medium();
        let word = position.fresh().in_place_of(was);
        let taken = match signature {
            Some(signature) if medium.breaks(canary::TORN_PAIR) => {
                let taken = slot.publish(medium, None, word);
                medium.store(slot.signature, signature, Ordering::Relaxed);
                medium.flush(slot.signature.span(8));
                taken
            }
            _ => slot.publish(medium, signature, word),
        };
        if taken == Taken::No {
            self.count(-counted);
        }
        self.lower_due();
        let take_marks = || medium.store(slot.position, without_marks(word).word(), Ordering::Release);
        if medium.breaks(canary::MARK_LOST_UNCOMMITTED) {
            take_marks();
        }
        let ticket = (!self.is_one_of_many).then(|| medium.commit(Level::Strongest));
        if ticket.is_some_and(Ticket::is_done) {
            if medium.breaks(canary::MARK_LOST_UNLOCKED) {
                drop(self);
            }
            take_marks();
        }
        Published { slot, word, ticket, crowded: None }
    }
}

/// What becomes of a published word once it is durable.
#[inline(always)]
fn without_marks(word: Position) -> Position {
    if word.is_deleted() { word.emptied() } else { word.settled() }
}

/// The sweep, which the bucket's lock keeps away, will not meet the item any more, and yet must not free it: that is
/// the retirement's to do.
#[inline(always)]
pub(super) fn mark_unlinked<D: Dram>(heap: &Heap<D>, position: Position) {
    if !heap.is_swept()
        && let Some(place) = position.place()
    {
        heap.mark_unlinked(place);
    }
}

impl Published {
    /// Waits until the entry is durable, then takes its FRESH mark away (steps 3 to 5). The caller is pinned since before
    /// it published, so that a word that names the same item is the same entry.
    ///
    /// One of many is settled after a commit that its publisher waited for.
    #[inline(always)]
    pub fn settle<M: Medium>(self, medium: &M) -> Result<(), MediumError> {
        if let Some(ticket) = self.ticket
            && (ticket.is_done()
                || medium.acknowledge(ticket)? == Waited::Deferred && !medium.breaks(canary::DEFERRED_SETTLED))
        {
            return Ok(());
        }
        let mut seen = self.word;
        // The word may have changed meanwhile: a reader settled it, or its line got an overflow bit.
        while self.is_unfinished(seen) {
            match medium.compare_exchange(self.slot.position, seen.word(), without_marks(seen).word()) {
                Ok(_) => break,
                Err(now) => seen = Position::from_word(now),
            }
        }
        Ok(())
    }

    /// True if `seen` is still what was published, and has a mark to lose.
    #[inline(always)]
    fn is_unfinished(&self, seen: Position) -> bool {
        let is_mine = seen.item() == self.word.item() && seen.is_deleted() == self.word.is_deleted();
        is_mine && (seen.is_fresh() || seen.is_deleted())
    }
}
