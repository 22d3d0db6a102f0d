//! Room: for records, for segments, and in the log.
//!
//! The log has a bound. The background makes a checkpoint at half of it. A writer that finds the log at the bound makes one before taking any
//! lock, or waits for the one under way. Writers that outrun the background are held back before that: from three quarters of the bound on
//! each waits for the checkpoint under way a little, the longer the nearer the log is to its bound and never longer than [`PACE_MAX`], and
//! goes on. So a write waits for a whole checkpoint only where none is under way, or where the last quarter does not last for the rest of one.
//!
//! Where a region is full, the room of records that readers have left is looked for first, and what lanes were promised and have not used (`reserve.rs`); then a
//! checkpoint gives back segments; last the reserve gives up surplus slots, half of those that are left each time.
//!
//! # Deletes in a full region
//! A lane that has keys has a segment ahead of need, or more than one segment. The lane's first put sees to the former; a write that begins
//! what is ahead leaves the latter; a checkpoint, which takes all segments away but for the newest, keeps one of them ahead of need (`Log::cut`). An opening
//! finds as many extents free as lanes had ahead of need, since the reserve is kept out of what was the reserve.
//! So a delete that finds no room in the lane's log finds some behind a checkpoint, for which there are slots. Other deletes may use that room up
//! meanwhile: then the first one makes the next checkpoint.
//!
//! Where no checkpoint can be made (a record is damaged, or the reserve lacks slots), puts do not begin what is ahead of need, which is left for deletes: a thousand of
//! a lane.
//!
//! # Damage
//! No checkpoint can name a record that cannot be read, and none may leave the record out: the key would be gone for good, and nobody told. So where
//! a record is damaged while the store is open the log grows beyond the bound, and a checkpoint is tried again when trying is cheap beside the log. Figures
//! tell how many such records there were at the last trial.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::{Error, wait_for_readers};
use heap::Reservation;
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::Pmekv;

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

fn last_quarter(max: u64) -> u64 {
    (max / 4).max(1).min(max)
}

/// What checkpoints met.
#[derive(Default)]
pub(crate) struct CheckpointDamage {
    /// How many entries the log had when one met damage, if the last did.
    damaged_at: Mutex<Option<u64>>,
}

impl CheckpointDamage {
    /// A checkpoint has read all records.
    pub(crate) fn clear(&self) {
        *self.damaged_at.lock() = None;
    }

    /// The last checkpoint met damage.
    pub(crate) fn met_damage(&self) -> bool {
        self.damaged_at.lock().is_some()
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    #[inline(always)]
    pub(crate) fn reserve(&self, item_bytes: u64) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(&self.medium, item_bytes, epoch::thread_index())?)
    }

    /// A checkpoint met a record that is damaged.
    pub(crate) fn note_damage(&self) -> Result<(), Error> {
        *self.checkpoint_damage.damaged_at.lock() = Some(self.lanes.entry_count());
        self.last_checkpoint.damaged_count.store(self.count_damaged()?, Ordering::Relaxed);
        Ok(())
    }

    /// A checkpoint would meet what the last one met, and the log has not grown by so much that trying is cheap beside it.
    pub(crate) fn is_vain(&self) -> bool {
        let grown = |before: u64| self.lanes.entry_count().saturating_sub(before);
        self.checkpoint_damage.damaged_at.lock().is_some_and(|before| grown(before) <= self.tree.len() / KEYS_PER_ENTRY)
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
        self.go_on_without(self.make_checkpoint(&mut checkpoint))
    }

    /// What a store makes of a checkpoint that failed: it goes on, if its medium does. The write itself may find room: a delete does.
    pub(crate) fn go_on_without(&self, made: Result<(), Error>) -> Result<(), Error> {
        made.or_else(|_| Ok(self.medium.health()?))
    }

    /// Tries again what found the region full, as long as there is something that may make room. The caller is not pinned, or what waits for it would not be freed.
    #[inline(always)]
    pub(crate) fn with_space<T>(&self, frees: bool, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let mut surplus = None;
        loop {
            match attempt() {
                Err(error) if error.is_full() && self.makes_space(&mut surplus, frees)? => {}
                done => return done,
            }
        }
    }

    /// Looks for room the first time, and from then on gives up the surplus that the reserve had then; false if none of it is left. Not what it has later: an
    /// attempt may take slots that were given up, and not come through.
    #[cold]
    #[inline(never)]
    fn makes_space(&self, surplus: &mut Option<u64>, frees: bool) -> Result<bool, Error> {
        if let Some(left) = surplus {
            return Ok(self.give_surplus_up(left));
        }
        self.make_space(frees)?;
        *surplus = Some(self.reserve.surplus_count());
        Ok(true)
    }

    /// The same for a key's delete, again as long as there are checkpoints: what each has given deletes of other threads have had.
    pub(crate) fn with_space_to_delete<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let number = self.last_checkpoint.number.load(Ordering::Acquire);
            let done = self.with_space(true, &mut attempt);
            let is_full = done.as_ref().is_err_and(Error::is_full);
            if !is_full || self.last_checkpoint.number.load(Ordering::Acquire) == number {
                return done;
            }
        }
    }

    /// Room for what adds, if a checkpoint gives any; for what frees a checkpoint is made in any case.
    fn make_space(&self, frees: bool) -> Result<(), Error> {
        wait_for_readers(|| {
            self.collect();
            !self.limbo.is_empty() && !epoch::is_pinned()
        });
        let mut checkpoint = self.checkpoint.lock();
        let gives = self.gather();
        if !frees && (!gives || self.is_vain()) {
            return Ok(());
        }
        self.go_on_without(self.make_checkpoint(&mut checkpoint))
    }

    /// Takes back what lanes were promised and have not used. True if a checkpoint would free segments or nodes. The caller holds the checkpoint's lock.
    fn gather(&self) -> bool {
        let mut is_long = false;
        for lane in 0..self.lanes.count() {
            let mut log = self.lanes.lock(lane);
            self.reserve.take_back(&mut log.keys);
            is_long |= log.is_long();
        }
        is_long || self.reserve.shrinks()
    }

    /// Comes before a write takes a lock: its old record may wait for readers.
    #[inline(always)]
    pub(crate) fn bound_garbage(&self) {
        if self.limbo.is_over() {
            self.hold_up();
        }
    }

    #[cold]
    #[inline(never)]
    fn hold_up(&self) {
        self.held_up.throttle(&self.limbo, || _ = self.collect());
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
    fn writers_slow_as_log_fills() {
        for max in [1, 3, 8, 1_000, 1 << 20, u64::MAX / 2] {
            let paces: Vec<_> = (0..=100).map(|percent| pace((max as u128 * percent / 100) as u64, max)).collect();
            assert!(paces.is_sorted() && paces[..75].iter().all(Duration::is_zero), "{max}: {paces:?}");
            assert_eq!(pace(max, max), PACE_MAX, "{max}");
            assert_eq!(pace(u64::MAX, max), PACE_MAX, "{max}");
        }
    }
}
