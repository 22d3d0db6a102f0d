//! Changes any number of keys as one step. A record holds the new contents of each changed bucket, and each bucket
//! is rewritten from it.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 items written, flushed | nothing |
//! | 2 all buckets locked, segment by segment; copies of them changed in DRAM | nothing |
//! | 3 the record: the new contents of the changed buckets; streamed, ordered | nothing |
//! | 4 the *overlay* shown to readers: the same buckets, undecided; counters + 1 | nothing |
//! | 5 the batch word names the record; published, its commit requested | nothing, or all: opening carries it out |
//! | 6 the overlay is decided: readers read it instead of these buckets | the same |
//! | 7 the buckets are stored, flushed; ordered. A log publishes them with lock bits | the same |
//! | 8a the word is cleared; ordered | all |
//! | 8b the overlay is removed, the turn ends, the locks are released, the record is freed | all |
//! | 9 the commit is waited for | all |
//!
//! A failed log may refuse step 5. Then nothing has happened, and the overlay is removed. If it refuses a bucket in
//! step 7, no further bucket is stored, and the decided overlay stays until the store is opened again. Readers of
//! these buckets then check the batch word, and get the medium's error unless that word is durable. No later batch
//! gets that far.
//!
//! Only the batch writes to its buckets from step 2 to step 8, so the record stays correct. A batch that finds no
//! space in step 2 releases all locks and the turn, splits, and starts again. One batch is carried out at a time: the
//! one with the turn.
//!
//! The turn ends before step 9, so any number of batches share one sync of a log. The next batch's word needs no wait
//! either: a log keeps the order of stores, so that word comes after this batch's buckets and its 0.

mod overlay;
mod record;

use std::collections::BTreeMap;
use std::ptr;

use heap::{HeapError, Reservation};
use pmem::{Dram, Medium, MediumError, Offset, Taken, Ticket};

use super::Slot;
use super::buckets::{Full, mark_unlinked, meta_to_change};
use super::canary;
use super::crowding::Moves;
use super::image::{Image, Words};
use super::layout::{FILLED_MAX, bucket, choices};
use super::segment::Segment;
use super::slot::Key;
use crate::Position;
use crate::segmented::segments::Segments;
use crate::segmented::{Context, Garbage, Segmented, Table};
use crate::shared::HeldLocks;

pub use overlay::Turn;
pub(super) use overlay::{Batches, Overlay};

/// Segments that lack space for their part of a batch, each with the signature of a key that found none.
#[derive(Clone, Debug)]
pub struct NoSpace(pub(super) Vec<(u64, Full)>);

/// The locked buckets of several keys, and the changes to them.
pub struct Batch<'a, M, D: Dram> {
    segments: &'a Segments<Segment>,
    batches: &'a Batches,
    moves: &'a Moves,
    cx: Context<'a, M, D>,
    _locks: Vec<HeldLocks<'a>>,
    images: BTreeMap<u64, Changed<'a>>,
    replaced: Vec<Slot>,
    /// Segments without space, and the signature of a key that found none.
    full: BTreeMap<u64, u64>,
}

/// The copy of a bucket.
struct Changed<'a> {
    image: Image,
    number: usize,
    segment: &'a Segment,
    is_changed: bool,
}

/// A slot that a batch found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The slot.
    pub slot: Slot,
    at: u64,
    i: usize,
}

impl<'a, M: Medium, D: Dram> Batch<'a, M, D> {
    /// Carries out step 2: locks the buckets of all these signatures, which are ascending. The caller has the turn.
    pub(super) fn lock(
        (segments, batches, moves): (&'a Segments<Segment>, &'a Batches, &'a Moves),
        cx: Context<'a, M, D>,
        _turn: &Turn<'_>,
        signatures: &[u64],
    ) -> Batch<'a, M, D> {
        loop {
            let (mut locks, mut found) = (Vec::new(), Vec::new());
            let mut rest = signatures;
            while let Some(&first) = rest.first() {
                let segment = segments.of(first);
                let is_own = |signature: &&u64| segments.is_in(segment, first, **signature);
                let (own, others) = rest.split_at(rest.iter().take_while(is_own).count());
                let mut numbers: Vec<_> = own.iter().flat_map(|signature| choices(*signature)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                locks.extend(numbers.into_iter().map(|number| segment.lock([number])));
                found.push(segment);
                rest = others;
            }
            if found.iter().all(|segment| !segment.is_dead()) {
                found.iter().for_each(|segment| segment.make_durable(cx.medium));
                return Batch {
                    segments,
                    batches,
                    moves,
                    cx,
                    _locks: locks,
                    images: BTreeMap::new(),
                    replaced: Vec::new(),
                    full: BTreeMap::new(),
                };
            }
        }
    }

    /// Copies the buckets of a key.
    fn buckets(&mut self, signature: u64) -> Vec<u64> {
        // The key's buckets are locked, so this is still the segment of the signature.
        let segment: &'a Segment = self.segments.of(signature);
        let of = |segment| choices(signature).map(|number| (number, bucket(segment, number)));
        let all: Vec<_> = segment.offsets().flat_map(of).collect();
        for &(number, at) in &all {
            let copy = || Changed { image: copied(self.cx.medium, at), number, segment, is_changed: false };
            self.images.entry(at.0).or_insert_with(copy);
        }
        all.into_iter().map(|(_, at)| at.0).collect()
    }

    /// Returns the slot of the key. Removes a duplicate.
    ///
    /// # Errors
    /// Returns the error of `is_key`.
    pub fn find<E>(
        &mut self,
        key: Key<'_>,
        mut is_key: impl FnMut(Position) -> Result<bool, E>,
    ) -> Result<Option<Found>, E> {
        let mut found = None;
        for at in self.buckets(key.signature) {
            let changed = self.images.get_mut(&at).expect("it was copied");
            let slots: Vec<_> = changed.image.slots().collect();
            for (i, slot) in slots {
                if !key.is_in(&slot, &mut is_key)? {
                } else if found.is_none() {
                    found = Some(Found { slot, at, i });
                } else {
                    changed.image.clear(i);
                    changed.is_changed = true;
                }
            }
        }
        Ok(found)
    }

    /// Returns a bucket of the signature that has a damaged slot, which might hold a key that was not found.
    pub fn damaged_bucket(&mut self, signature: u64) -> Option<Offset> {
        let buckets = self.buckets(signature);
        buckets.into_iter().find(|at| self.images[at].image.has_damaged_slot()).map(Offset)
    }

    /// Inserts a slot for a key that was not found, if there is space; see [`Batch::has_space`].
    pub fn insert(&mut self, signature: u64, slot: &Slot) {
        let buckets = self.buckets(signature);
        let filled = |at: &u64| self.images[at].image.meta().filled();
        let Some(at) = buckets.into_iter().filter(|at| filled(at) < FILLED_MAX).min_by_key(filled) else {
            self.full.insert(self.segments.of(signature).offset().0, signature);
            return;
        };
        let changed = self.images.get_mut(&at).expect("it was copied");
        let i = changed.image.meta().free_slot().expect("it has space");
        changed.image.set(i, slot);
        changed.is_changed = true;
    }

    /// Returns `Ok` if there was space for all slots. Otherwise drop the batch, call
    /// [`super::BlockHash::split_for_batch`] and start again.
    ///
    /// # Errors
    /// [`NoSpace`].
    pub fn has_space(&self) -> Result<(), NoSpace> {
        if self.full.is_empty() {
            return Ok(());
        }
        Err(NoSpace(
            self.full.iter().map(|(&segment, &signature)| (signature, Full { segment: Offset(segment) })).collect(),
        ))
    }

    /// Replaces a slot of the key by another, or empties it.
    pub fn replace(&mut self, old: &Found, slot: Option<&Slot>) {
        self.replaced.push(old.slot);
        let changed = self.images.get_mut(&old.at).expect("it was copied");
        match slot {
            Some(slot) => changed.image.set(old.i, slot),
            None => changed.image.clear(old.i),
        }
        changed.is_changed = true;
    }

    /// Returns true if no bucket changes.
    pub fn changes_nothing(&self) -> bool {
        self.images.values().all(|changed| !changed.is_changed)
    }

    /// Reserves the space for the record.
    ///
    /// # Errors
    /// Returns the allocator's error; then nothing has changed.
    pub fn reserve_record(&self) -> Result<Reservation<'a, D>, HeapError> {
        let count = self.images.values().filter(|changed| changed.is_changed).count();
        self.cx.heap.reserve(self.cx.medium, record::bytes(count), epoch::thread_index())
    }

    /// Carries out steps 3 to 8, and returns the ticket to wait for. The caller waits without locks and turn.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`]; then nothing has happened.
    pub fn commit(mut self, turn: Turn<'_>, record: Reservation<'a, D>) -> Result<Ticket, MediumError> {
        self.images.retain(|_, changed| changed.is_changed);
        let (cx, record) = (self.cx, record.publish());
        let images = self.images.iter().map(|(at, changed)| (*at, changed.image)).collect();
        let overlay = Box::into_raw(Box::new(Overlay::undecided(images)));
        // SAFETY: it came from a box, and is freed no earlier than it is retired below.
        let images = unsafe { (*overlay).images() };
        record::write(cx.medium, record.offset, images);
        cx.medium.order_unless(canary::BLOCK_BATCH_BEFORE_RECORD);
        if cx.medium.breaks(canary::CARRIED_OUT_BEFORE_WORD) {
            let _ = self.carry_out(images, true);
        }
        let before = self.batches.show(overlay);
        // The counters are raised only now: a reader that sees the raised counter also sees the overlay, or its
        // removal.
        self.images.values().for_each(|changed| _ = changed.segment.raise(changed.number));
        let Some(ticket) = record::publish(cx.medium, record.offset) else {
            self.take_away(overlay, before);
            return cx.medium.health().map(|()| unreachable!("a working medium accepts every word"));
        };
        // SAFETY: as above.
        unsafe { &*overlay }.decide();
        self.count_items();
        self.replaced.iter().for_each(|slot| mark_unlinked(cx, slot));
        let turn = Some(turn).filter(|_| !cx.medium.breaks(canary::BLOCK_BATCH_TURN_ENDED_EARLY));
        if self.carry_out(images, ticket.is_done()) == Taken::No {
            return Ok(ticket);
        }
        cx.medium.order_unless(canary::BLOCK_BATCH_FORGOTTEN_EARLY);
        record::clear(cx.medium);
        cx.medium.order();
        self.moves.note_crowding();
        self.take_away(overlay, ptr::null_mut());
        drop(turn);
        cx.heap.free(cx.medium, record);
        Ok(ticket)
    }

    fn take_away(&self, overlay: *mut Overlay, before: *mut Overlay) {
        self.cx.retire(Garbage::Table(Table::new(self.batches.take_away(overlay, before))));
    }

    /// Carries out step 7, except for the ordering, as far as the medium accepts it.
    fn carry_out(&self, images: &BTreeMap<u64, Image>, is_durable: bool) -> Taken {
        let medium = self.cx.medium;
        for (&at, image) in images {
            if is_durable {
                image.unlocked().store(medium, Offset(at));
            } else {
                image.store(medium, Offset(at));
                let taken = medium.publish(&[(Offset(at), image.meta().word())], at);
                if taken == Taken::No && !medium.breaks(canary::REFUSED_BATCH_CARRIED_OUT) {
                    return Taken::No;
                }
            }
        }
        Taken::Yes
    }

    /// Counts the items. The buckets in the region are still the old ones.
    fn count_items(&self) {
        for (&at, changed) in &self.images {
            let before = Image::of(self.cx.medium, Offset(at)).meta().filled();
            changed.segment.count(i64::from(changed.image.meta().filled()) - i64::from(before));
        }
    }
}

/// Copies a bucket, with lock bits for slots that are not known to be durable.
fn copied<M: Medium>(medium: &M, at: Offset) -> Image {
    let image = Image::of(medium, at);
    image.with_meta(meta_to_change(medium, at, image.meta()))
}
