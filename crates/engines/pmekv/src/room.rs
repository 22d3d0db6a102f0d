//! Room: for records, for segments, and in the log.
//!
//! The log has a bound. The background makes a checkpoint at half of it. A writer that finds the log at the bound makes one before taking any
//! lock, or waits for the one under way. Writers that outrun the background are held back before that: from three quarters of the bound on
//! each waits for the checkpoint under way a little, the longer the nearer the log is to its bound and never longer than [`PACE_MAX`], and
//! goes on. So a write waits for a whole checkpoint only where none is under way, or where the last quarter does not last for the rest of one.
//!
//! Where a region is full, the room of records that readers have left is looked for first; then a checkpoint gives back segments.
//! Each lane keeps a segment ahead of need that only deletes may begin, so in a full region a thousand deletes of a lane find room even
//! if no checkpoint does.
//!
//! # In vain
//! A checkpoint that found no room is not tried again before it may find some. So whatever goes back to the allocator from the
//! moment on in which it began counts: freed records, after they are free; and room that a write had reserved before it failed, which is
//! nobody's record. What goes back meanwhile and is found counts too: then one checkpoint more is tried.
//!
//! No checkpoint can name a record that cannot be read, and none may leave the record out: the key would be gone for good, and nobody told. So where
//! a record is damaged while the store is open the log grows beyond the bound, and a checkpoint is tried again when trying is cheap beside the log. Figures
//! tell how many such records there were at the last trial.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use engine::{Error, while_readers_keep, with_room};
use heap::{Place, Reservation};
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::layout::{NODE_BYTES, NODE_KEY_COUNT_MAX};

/// The log has an entry for so many keys, at most, where that is more than its bound.
const KEYS_PER_ENTRY: u64 = 4;

/// The longest that a write is held back before the log is at its bound.
const PACE_MAX: Duration = Duration::from_micros(500);

/// How long a writer waits for the checkpoint under way, where the log has so many entries and is to have fewer than `max`.
fn pace(entry_count: u64, max: u64) -> Duration {
    let quarter = last_quarter(max);
    let over = entry_count.saturating_sub(max - quarter).min(quarter);
    PACE_MAX.mul_f64(over as f64 / quarter as f64)
}

/// A store goes on without the checkpoint that ended so.
pub(crate) fn is_in_vain(error: &Error) -> bool {
    error.is_full() || matches!(error, Error::Corrupt { .. })
}

fn last_quarter(max: u64) -> u64 {
    (max / 4).max(1).min(max)
}

/// How things were when a checkpoint found no room.
#[derive(Clone, Copy)]
struct Vain {
    /// When it began.
    freed_bytes: u64,
    spare_bytes: u64,
    entry_count: u64,
    /// What its nodes lacked.
    lacking_bytes: u64,
}

/// Whether there is room for a checkpoint, as far as the last one tells.
#[derive(Default)]
pub(crate) struct Room {
    /// Bytes of records that were freed, and of reserved room that went back and that a checkpoint may have missed.
    freed_bytes: AtomicU64,
    /// Odd while a checkpoint's nodes are written.
    turn: AtomicU64,
    vain: Mutex<Option<Vain>>,
}

/// Room for a record, until something names that.
pub(crate) struct Reserved<'a, D: Dram> {
    room: Option<Reservation<'a, D>>,
    bytes: u64,
    known: &'a Room,
    /// When it was reserved; while a checkpoint was under way, the turn before that.
    turn: u64,
}

impl<D: Dram> Reserved<'_, D> {
    #[inline(always)]
    pub(crate) fn place(&self) -> Place {
        self.room.as_ref().expect("it goes with this").place()
    }

    /// Keeps it.
    #[inline(always)]
    pub(crate) fn publish(mut self) -> Place {
        self.room.take().expect("it goes with this").publish()
    }
}

impl<D: Dram> Drop for Reserved<'_, D> {
    fn drop(&mut self) {
        let Some(room) = self.room.take() else { return };
        drop(room);
        // Either this sees that a checkpoint has begun, or that sees the room.
        fence(Ordering::SeqCst);
        if self.known.turn.load(Ordering::Relaxed) != self.turn {
            self.known.count_freed(self.bytes);
        }
    }
}

impl Room {
    pub(crate) fn count_freed(&self, bytes: u64) {
        self.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A checkpoint has found room.
    pub(crate) fn is_found(&self) {
        *self.vain.lock() = None;
    }

    /// A checkpoint looks for room: how much was freed so far.
    pub(crate) fn begin(&self) -> u64 {
        let freed_bytes = self.freed_bytes.load(Ordering::Relaxed);
        self.turn.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        freed_bytes
    }

    /// It looks no more.
    pub(crate) fn end(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    #[inline(always)]
    pub(crate) fn reserve(&self, item_bytes: u64) -> Result<Reserved<'_, D>, Error> {
        let turn = self.room.turn.load(Ordering::Relaxed) & !1;
        let room = self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?;
        let bytes = self.heap.place_bytes(room.place());
        Ok(Reserved { room: Some(room), bytes, known: &self.room, turn })
    }

    /// A checkpoint that began when so much was freed found room for so many nodes, which are freed again, and no more.
    pub(crate) fn note_vain(&self, freed_bytes: u64, node_count: u64) {
        let lacking = self.tree.len().div_ceil(NODE_KEY_COUNT_MAX as u64).saturating_sub(node_count).max(1);
        *self.room.vain.lock() = Some(Vain {
            freed_bytes,
            spare_bytes: self.heap.spare_bytes(),
            entry_count: self.lanes.entry_count(),
            lacking_bytes: lacking * NODE_BYTES,
        });
    }

    /// A checkpoint met a record that is damaged, which more room does not mend.
    pub(crate) fn note_damage(&self) -> Result<(), Error> {
        let entry_count = self.lanes.entry_count();
        *self.room.vain.lock() =
            Some(Vain { freed_bytes: 0, spare_bytes: u64::MAX, entry_count, lacking_bytes: u64::MAX });
        self.told.damaged_count.store(self.count_damaged()?, Ordering::Relaxed);
        Ok(())
    }

    /// A checkpoint would find no room, as the last one found none: not so much was freed, the region is no larger, and the log has not
    /// grown by so much that trying is cheap beside it.
    fn is_vain(&self) -> bool {
        let grown = |vain: Vain| self.lanes.entry_count().saturating_sub(vain.entry_count);
        self.room.vain.lock().is_some_and(|vain| {
            self.room.freed_bytes.load(Ordering::Relaxed) - vain.freed_bytes < vain.lacking_bytes
                && self.heap.spare_bytes() <= vain.spare_bytes
                && grown(vain) <= self.tree.len() / KEYS_PER_ENTRY
        })
    }

    fn log_entry_count_max(&self) -> u64 {
        self.options.log_entry_count_max.max(self.tree.len() / KEYS_PER_ENTRY)
    }

    /// True if the background should make a checkpoint.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.lanes.entry_count() >= self.log_entry_count_max().div_ceil(2) && !self.is_vain()
    }

    /// Comes before a write takes a lock: the log has room.
    pub(crate) fn bound_log(&self) -> Result<(), Error> {
        let (entry_count, max) = (self.lanes.entry_count(), self.log_entry_count_max());
        if entry_count >= max {
            return self.shorten_log();
        }
        if entry_count > max - last_quarter(max) {
            self.hold_back(pace(entry_count, max));
        }
        Ok(())
    }

    /// Nobody is held back where no checkpoint is under way.
    #[cold]
    fn hold_back(&self, wait_max: Duration) {
        drop(self.checkpoint.try_lock_for(wait_max));
    }

    /// A writer that comes while another makes the checkpoint waits for it.
    #[cold]
    fn shorten_log(&self) -> Result<(), Error> {
        let mut checkpoint = self.checkpoint.lock();
        if self.lanes.entry_count() < self.log_entry_count_max() || self.is_vain() {
            return Ok(());
        }
        match self.make_checkpoint(&mut checkpoint) {
            // The write itself may yet find room: a delete does.
            Err(error) if is_in_vain(&error) => Ok(()),
            done => done,
        }
    }

    /// Tries a second time what found the region full. The caller is not pinned, or what waits for it would not be freed.
    pub(crate) fn with_room<T>(&self, attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.with_room_by(|| !self.is_vain(), attempt)
    }

    /// The same for what frees room and has to be done for that: a checkpoint is tried in any case.
    pub(crate) fn with_all_room<T>(&self, attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.with_room_by(|| true, attempt)
    }

    /// Comes after a write that has given back, full as the region was, what it had reserved: a checkpoint may have missed that.
    pub(crate) fn look_again(&self) -> Result<(), Error> {
        self.make_room(|| !self.is_vain())
    }

    fn with_room_by<T>(
        &self,
        may_checkpoint: impl Fn() -> bool,
        attempt: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        with_room(attempt, || self.make_room(&may_checkpoint))
    }

    #[cold]
    fn make_room(&self, may_checkpoint: impl Fn() -> bool) -> Result<(), Error> {
        while_readers_keep(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
        let mut checkpoint = self.checkpoint.lock();
        if !may_checkpoint() {
            return Ok(());
        }
        match self.make_checkpoint(&mut checkpoint) {
            Err(error) if is_in_vain(&error) => Ok(()),
            done => done,
        }
    }

    /// Frees the records that no reader can look at any more; true if there were any.
    pub(crate) fn collect(&self) -> bool {
        self.limbo.collect(|free| self.free(free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_held_back_the_longer_the_fuller_the_log_is_and_never_for_long() {
        for max in [1, 3, 8, 1_000, 1 << 20, u64::MAX / 2] {
            let paces: Vec<_> = (0..=100).map(|percent| pace((max as u128 * percent / 100) as u64, max)).collect();
            assert!(paces.is_sorted() && paces[..75].iter().all(Duration::is_zero), "{max}: {paces:?}");
            assert_eq!(pace(max, max), PACE_MAX, "{max}");
            assert_eq!(pace(u64::MAX, max), PACE_MAX, "{max}");
        }
    }
}
