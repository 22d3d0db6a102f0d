//! Space for records, for segments, and in the log.
//!
//! The log has a bound. A background thread makes a checkpoint at half of it. A writer that finds the log at the bound
//! makes a checkpoint before it takes any lock, or waits for the running one. Writers that outrun the background are
//! slowed down earlier: above three quarters of the bound, each waits for the running checkpoint for a short time and
//! then continues. The wait grows as the log fills and never exceeds [`PACE_MAX`]. So a write waits for an entire
//! checkpoint only if none is running, or if the last quarter fills before the checkpoint ends.
//!
//! In a full region, a write first frees records that readers have left, and takes back unused promises of lanes
//! (`reserve.rs`). Then a checkpoint frees segments. Last, the reserve frees surplus slots, each time half of those
//! that are left.
//!
//! # Deletes in a full region
//! A lane that has keys has a segment ahead of need, or more than one segment. The lane's first put provides a segment
//! ahead of need. A write that begins that segment leaves the lane with more than one. A checkpoint, which frees all
//! segments except the newest, keeps one of them ahead of need (`Log::cut`). An opening finds as many free extents as
//! lanes had ahead of need, because it takes the slots of the reserve from those of the previous reserve. So a delete
//! that finds no space in the lane's log finds some after a checkpoint, for which there are slots. Other deletes may
//! use up that space first: then the waiting delete makes the next checkpoint.
//!
//! If no checkpoint can be made (a record is damaged, or the reserve lacks slots), puts do not begin the segment ahead
//! of need. It is left for deletes: a thousand per lane.
//!
//! # Damage
//! A checkpoint cannot name a record that cannot be read, and must not omit it: the key would be lost permanently and
//! silently. So if a record is damaged while the store is open, the log grows beyond its bound, and a checkpoint is
//! tried again when a trial is cheap compared with the log's growth. A metric has the number of such records at the
//! last trial.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::Error;
use pmem::{Dram, Medium};

use super::Checkpointer;

/// The log's bound is at least one entry per this many keys.
const KEYS_PER_ENTRY: u64 = 4;

/// The longest wait of a write before the log is at its bound.
const PACE_MAX: Duration = Duration::from_micros(500);

/// Returns how long a writer waits for the running checkpoint when the log has `entry_count` entries and must stay
/// below `max`.
fn pace(entry_count: u64, max: u64) -> Duration {
    let quarter = last_quarter(max);
    let over = entry_count.saturating_sub(max - quarter).min(quarter);
    PACE_MAX.mul_f64(over as f64 / quarter as f64)
}

fn last_quarter(max: u64) -> u64 {
    (max / 4).max(1).min(max)
}

impl<M: Medium, D: Dram> Checkpointer<M, D> {
    /// Returns true if a checkpoint would meet the same damage as the last one, and the log has not grown enough to
    /// make a trial cheap in comparison.
    pub(crate) fn would_repeat_damage(&self) -> bool {
        let is_small = |grown| grown <= self.reader.tree().len() / KEYS_PER_ENTRY;
        self.lanes.grown_since_damage().is_some_and(is_small)
    }

    fn log_entry_count_max(&self) -> u64 {
        self.log_entry_count_max.max(self.reader.tree().len() / KEYS_PER_ENTRY)
    }

    /// Returns true if the background should make a checkpoint.
    pub(crate) fn is_wanted(&self) -> bool {
        self.lanes.entry_count() >= self.log_entry_count_max().div_ceil(2) && !self.would_repeat_damage()
    }

    /// Ensures, before a write takes a lock, that the log has space.
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

    /// Waits for the running checkpoint for at most `wait_max`; returns immediately if none is running.
    #[cold]
    fn hold_back(&self, wait_max: Duration) {
        drop(self.current.try_lock_for(wait_max));
    }

    /// Makes a checkpoint, or waits for the one that another writer makes.
    #[cold]
    fn shorten_log(&self) -> Result<(), Error> {
        let mut current = self.current.lock();
        if self.lanes.entry_count() < self.log_entry_count_max() || self.would_repeat_damage() {
            return Ok(());
        }
        self.reader.region().continue_without_checkpoint(self.make_after(&mut current))
    }

    /// Retries `attempt` while the region is full and something may still free space. The caller is not pinned, since
    /// its pin would block the freeing.
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

    /// Frees space the first time, and after that the surplus that the reserve had then; false if none of it is left.
    /// Surplus that appears later is excluded: an attempt may take freed slots and still fail.
    #[cold]
    #[inline(never)]
    fn makes_space(&self, surplus: &mut Option<u64>, frees: bool) -> Result<bool, Error> {
        let Some(left) = surplus else {
            self.make_space(frees)?;
            *surplus = Some(self.lanes.reserve().surplus_count());
            return Ok(true);
        };
        if *left == 0 {
            return Ok(false);
        }
        let _no_checkpoint = self.current.lock();
        let count = self.lanes.reserve().free_half(self.reader.region(), *left);
        *left -= count;
        Ok(count > 0)
    }

    /// Retries likewise for a delete of a key, as long as new checkpoints are made: other threads' deletes may have
    /// used the space that each freed.
    pub(crate) fn with_space_to_delete<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let number = self.last.number.load(Ordering::Acquire);
            let done = self.with_space(true, &mut attempt);
            let is_full = done.as_ref().is_err_and(Error::is_full);
            if !is_full || self.last.number.load(Ordering::Acquire) == number {
                return done;
            }
        }
    }

    /// Frees space. For an operation that adds, it makes a checkpoint only if that frees any; for one that frees, in
    /// any case.
    fn make_space(&self, frees: bool) -> Result<(), Error> {
        self.reader.region().collect_and_wait();
        let mut current = self.current.lock();
        let gives = self.lanes.gather();
        if !frees && (!gives || self.would_repeat_damage()) {
            return Ok(());
        }
        self.reader.region().continue_without_checkpoint(self.make_after(&mut current))
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
