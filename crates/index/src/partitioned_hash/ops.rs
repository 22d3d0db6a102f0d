//! Inserts, replaces and removes one entry.
//!
//! | operation | steps | a crash after each leaves |
//! |---|---|---|
//! | insert | 1 (full home line only) overflow bit, flush | nothing, or the bit: searches go further, find nothing |
//! |        |   the item and the bit are ordered before the entry | |
//! |        | 2 signature, position with FRESH, write-back | the entry or not; its item is durable either way |
//! |        | 3 commit, unlock, wait | the entry |
//! |        | 4 FRESH off, not flushed | the entry; recovery ignores FRESH |
//! | replace | 2 to 4, with the position only | the old item or the new one |
//! | remove | 2 to 4, with the old position marked DELETED | the item, or a mark that reads as absent |
//! |        | 5 position 0, not flushed | as before; only now may the slot be filled again |
//!
//! On memory, the commit is complete when it returns (`Ticket::is_done`), and steps 4 and 5 precede the unlock, by
//! a plain store. At that time only a reader that clears FRESH can change the word; its exchange either fails or
//! had the same result. On other media, steps 4 and 5 follow the wait, without the lock.
//!
//! A writer on a log may not wait (`Acknowledge::acknowledge`). It then leaves steps 4 and 5 to the threads that
//! find the word. A reader clears FRESH when the log is durable up to the point at which the word was published.
//! The next writer that searches for a free entry clears a removal's mark, under the lock.
//!
//! A writer on a log does not wait for a FRESH word found under the lock, because the word that the writer
//! publishes comes later in the log.
//!
//! A failed log does not accept a word (`Taken`): the entry stays as it was, and step 3 returns the error. The
//! entry then still names the item that was to be replaced, so nothing is retired after the medium has failed.
//!
//! A reader may settle a word first, and an insert of a neighbour may set the line's overflow bit in the word.
//! Steps 4 and 5 therefore compare the item that the word names. If the word names another item, or has lost the
//! mark, they have nothing to do.
//!
//! The ordering before step 2 is done after the search: see
//! `docs/decisions/0001-commit-an-entry-with-one-8-byte-store.md`.

use std::sync::atomic::Ordering;
use std::thread;

use heap::Heap;
use pmem::{Dram, Level, Medium, MediumError, Offset, Taken, Ticket, Waited};

use super::due::{Due, NEVER};
use super::layout::Home;
use super::locked::LockedHome;
use super::search::Found;
use super::segment::Segment;
use super::slot::Slot;
use super::{Context, PartitionedHash, broken};
use crate::Position;
use crate::canary;
use crate::segmented::Segmented;
use crate::segmented::segments::Segments;
use crate::shared::Locked;

impl PartitionedHash {
    /// Locks the pair of `signature` for a writer, which is pinned until it drops the bucket.
    #[inline]
    pub fn lock<'a, M: Medium, D: Dram>(&'a self, cx: Context<'a, M, D>, signature: u64) -> Bucket<'a, M, D> {
        let home = Home::of(signature);
        loop {
            let segment = self.segments.of(signature);
            let lock = segment.lock_pair(home.pair);
            if !segment.is_dead() {
                return self.bucket(cx, segment, lock, signature);
            }
            drop(lock);
            thread::yield_now();
        }
    }

    /// Records that an entry of this signature is due at `moment`. The caller is pinned and holds no lock.
    pub fn lower_due_of<M: Medium, D: Dram>(&self, cx: Context<'_, M, D>, signature: u64, moment: u64) {
        self.lock(cx, signature).due_at(moment).lower_due();
    }

    /// Returns the bucket of `signature` in a live segment whose pair is locked.
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
        Bucket {
            home,
            heap: cx.heap,
            is_one_of_many: false,
            due: NEVER,
            segments: &self.segments,
            due_of_all: &self.due,
            _lock: lock,
        }
    }
}

/// A locked pair of buckets, in which a writer changes one key.
pub struct Bucket<'a, M, D: Dram> {
    pub(super) home: LockedHome<'a, M>,
    heap: &'a Heap<D>,
    is_one_of_many: bool,
    due: u64,
    segments: &'a Segments<Segment>,
    due_of_all: &'a Due,
    _lock: Locked<'a>,
}

/// An entry that was published and committed, but perhaps not waited for. The bucket is unlocked.
#[derive(Debug)]
#[must_use]
pub struct Published {
    pub(super) slot: Slot,
    pub(super) word: Position,
    /// `None` if the entry is committed together with others.
    pub(super) ticket: Option<Ticket>,
    /// The segment, if it should be split because its stash fills up.
    pub crowded: Option<Offset>,
}

impl<'a, M: Medium, D: Dram> Bucket<'a, M, D> {
    /// Like [`PartitionedHash::find`], under the lock.
    pub fn find<R, E: From<MediumError>>(
        &self,
        visit: impl FnMut(Position) -> Result<Option<R>, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.home.find(visit)
    }

    /// Publishes the entry as one of a group: the items of all entries were ordered together, and the caller that
    /// settles them commits all of them together. Until then, the mark FRESH stands for the missing steps.
    pub fn in_group(self) -> Bucket<'a, M, D> {
        Bucket { is_one_of_many: true, ..self }
    }

    /// Sets the due time of the entry that is about to be published; see `due`.
    pub fn due_at(mut self, moment: u64) -> Bucket<'a, M, D> {
        self.due = moment;
        self
    }

    /// Lowers the due times of the segment and of the index to that of the published entry.
    #[inline(always)]
    fn lower_due(&self) {
        if self.due != NEVER {
            lower_due(self.home.segment(), self.due_of_all, self.due);
        }
    }

    /// Inserts `position`, whose item was flushed. The key must have no entry yet.
    ///
    /// # Errors
    /// Returns the offset of the segment if it has no space: split it and try again.
    pub fn insert(self, position: Position) -> Result<Published, Offset> {
        let free = |slot: Slot| self.home.is_free(slot);
        let segment = self.home.segment();
        let stash;
        let (entry, is_crowded) = match self.home.free_entry(free) {
            Some(entry) => (entry, false),
            None => {
                stash = segment.lock_stash();
                let Some(entry) = self.home.free_entry_in_stash(free) else {
                    drop(stash);
                    return Err(segment.offset());
                };
                entry
            }
        };
        let is_marked = self.home.mark_way(entry.way);
        self.count(1);
        if is_marked || !self.is_one_of_many {
            self.order_item();
        }
        let (crowded, signature) = (is_crowded.then_some(segment.offset()), Some(self.home.signature()));
        let was = self.home.now(entry.slot);
        Ok(Published { crowded, ..self.publish((entry.slot, was), signature, position, 1) })
    }

    /// Inserts `position`, whose item was flushed, at a free entry of the home line. The key must have no entry
    /// yet.
    #[inline(always)]
    pub fn insert_at(self, slot: Slot, position: Position) -> Published {
        self.count(1);
        if !self.is_one_of_many {
            self.order_item();
        }
        let (was, signature) = (self.home.now(slot), self.home.signature());
        self.publish((slot, was), Some(signature), position, 1)
    }

    /// Replaces the found item by `position`, whose item was flushed.
    #[inline(always)]
    pub fn replace<R>(self, found: &Found<R>, position: Position) -> Published {
        let was = self.home.now(found.slot);
        self.replace_word((found.slot, was), position)
    }

    /// Like [`Bucket::replace`], for an entry that a lookup found, with its present word.
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

    /// Marks the found entry as deleted.
    #[inline(always)]
    pub fn remove<R>(self, found: &Found<R>) -> Published {
        let seen = Found { slot: found.slot, position: self.home.now(found.slot), value: () };
        self.remove_found(&seen)
    }

    /// Like [`Bucket::remove`], for an entry that a lookup found, with its present word.
    #[inline(always)]
    pub fn remove_found(self, found: &Found<()>) -> Published {
        self.count(-1);
        mark_unlinked(self.heap, found.position);
        let medium = self.home.medium();
        if medium.breaks(canary::PLAIN_ZERO_DELETE) {
            return broken::remove_by_plain_zero(medium, found.slot, self.home.now(found.slot));
        }
        self.publish((found.slot, found.position), None, found.position.deleted(), -1)
    }

    /// Adds `by` to the counters of entries.
    #[inline(always)]
    fn count(&self, by: i16) {
        self.home.segment().count(self.home.pair(), by);
        self.segments.root().counter.add(by.into());
    }

    /// Makes everything that the entry relies on durable before the entry. It comes this late so that the
    /// write-back runs while the bucket is searched.
    #[inline(always)]
    fn order_item(&self) {
        let medium = self.home.medium();
        medium.order_unless(canary::ITEM_NOT_ORDERED);
    }

    /// Carries out steps 2 and 3 up to the unlock. The new word replaces the one that is there; under the lock,
    /// only a reader that clears FRESH can change that. `counted` is the number of entries already counted for this
    /// operation.
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
                broken::publish_position_first(medium, slot, signature, word)
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

#[cold]
fn lower_due(segment: &Segment, of_all: &Due, moment: u64) {
    segment.due.lower(moment);
    of_all.lower_rarely(moment);
}

/// Returns the word that replaces a published word when that is durable.
#[inline(always)]
fn without_marks(word: Position) -> Position {
    if word.is_deleted() { word.emptied() } else { word.settled() }
}

/// Marks an unlinked item for the sweep, which the bucket's lock keeps out. The sweep will not reach the item any
/// more, and yet must not free it: the retirement does that.
#[inline(always)]
pub(super) fn mark_unlinked<D: Dram>(heap: &Heap<D>, position: Position) {
    if !heap.is_swept()
        && let Some(place) = position.place()
    {
        heap.sweep().mark_unlinked(place);
    }
}

impl Published {
    /// Waits until the entry is durable, then clears its FRESH mark (steps 3 to 5). The caller has been pinned
    /// since before it published, so a word that names the same item is the same entry.
    ///
    /// An entry of a group is settled after a commit for which its publisher waited.
    #[inline(always)]
    pub fn settle<M: Medium>(self, medium: &M) -> Result<(), MediumError> {
        if let Some(ticket) = self.ticket
            && (ticket.is_done()
                || medium.acknowledge(ticket)? == Waited::Deferred && !medium.breaks(canary::DEFERRED_SETTLED))
        {
            return Ok(());
        }
        let mut seen = self.word;
        // A reader may have settled the word, or its line may have got an overflow bit.
        while self.is_unfinished(seen) {
            match medium.compare_exchange(self.slot.position, seen.word(), without_marks(seen).word()) {
                Ok(_) => break,
                Err(now) => seen = Position::from_word(now),
            }
        }
        Ok(())
    }

    /// Returns true if `seen` is still the published word and has a mark to clear.
    #[inline(always)]
    fn is_unfinished(&self, seen: Position) -> bool {
        let is_mine = seen.item() == self.word.item() && seen.is_deleted() == self.word.is_deleted();
        is_mine && (seen.is_fresh() || seen.is_deleted())
    }
}
