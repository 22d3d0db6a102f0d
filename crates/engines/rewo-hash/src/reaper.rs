//! The reaper: deletes expired keys.
//!
//! The table does not index expiries, so the reaper walks it, one segment per step. It walks from the first to the last
//! segment, pauses, and begins again if the walk met an item that expires, or if one was put since the walk began. A
//! store without such items is walked once after open, and not again.
//!
//! An expired key is deleted by a write that checks again, under the locks, that its slot is unchanged: a renewed key
//! stays.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::expectation::REST;
use engine::{COPIED_BYTES_MAX, Error, Expectation, ExpiredItem, Pace, PriorState, Progress, WriteResult};
use index::block_hash::Slot;
use index::segmented::Cursor;
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::background::Background;
use crate::write::Outcome;

/// The reaper's state that other threads use.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    pub(crate) expectation: Expectation,
    pace: Pace,
    reaped_count: AtomicU64,
}

/// The time that a writer waits for the thread that is doing a step before it continues without a step.
const TURN_MAX: Duration = Duration::from_millis(1);

impl Reaper {
    /// Notes that an item that expires was put.
    pub(crate) fn expect(&self) {
        self.expectation.expect();
        if self.pace.put(1) {
            self.expectation.hurry();
        }
    }

    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Walks a segment. A callback may use the store, so the background lock is released before callbacks.
    pub(crate) fn reap(&self, mut background: MutexGuard<'_, Background>) -> Result<Progress, Error> {
        let cursor = match background.reap {
            Some(cursor) => cursor,
            None if self.reaper.expectation.begin() => {
                self.reaper.pace.begin();
                Cursor::default()
            }
            None => return Ok(Progress::Idle),
        };
        let mut reaped = Vec::new();
        let walked = self.reap_segment(cursor, &mut reaped);
        // A segment that could not be walked is repeated in the next step.
        let next = *walked.as_ref().unwrap_or(&cursor);
        background.reap = (!next.is_done()).then_some(next);
        let is_to_rest = next.is_done() && self.reaper.expectation.end();
        if next.is_done() {
            self.reaper.pace.end();
        }
        drop(background);
        // These keys are deleted, even if the walk failed after them.
        reaped.into_iter().for_each(|item| self.expired_hook.notify(item));
        Ok(match walked?.is_done() {
            false => Progress::More,
            true if is_to_rest => Progress::Rest(REST),
            true => Progress::Idle,
        })
    }

    /// Does a step for a writer, if the reaper is behind.
    pub(crate) fn keep_pace(&self) -> Result<(), Error> {
        if !self.reaper.pace.is_behind() || !self.swept.load(Ordering::Acquire) || epoch::is_pinned() {
            return Ok(());
        }
        match self.background.try_lock_for(TURN_MAX) {
            Some(background) => self.reap(background).map(drop),
            None => Ok(()),
        }
    }

    /// Deletes the expired keys of a segment. Returns the next segment, or the same one if many values were copied for
    /// the callback.
    fn reap_segment(&self, cursor: Cursor, reaped: &mut Vec<ExpiredItem>) -> Result<Cursor, Error> {
        let _pin = epoch::pin();
        let (shown, next) = self.table.visit(&self.medium, cursor)?;
        let (mut deleted_count, mut copied_bytes) = (0, 0);
        for (_, slot) in &shown.slots {
            // A caller that requests the damaged key gets the error.
            let Ok(seen) = self.contents(slot) else { continue };
            if !seen.expiry.is_never() {
                self.reaper.expectation.expect();
            }
            let is_due = self.clock.is_past(seen.expiry) && self.intact_contents(slot).is_ok();
            if is_due && let Some(outcome) = self.reap_key(seen.key, slot)? {
                self.reaper.reaped_count.fetch_add(1, Ordering::Relaxed);
                deleted_count += 1;
                copied_bytes += outcome.expired.as_ref().map_or(0, ExpiredItem::len_bytes);
                reaped.extend(outcome.expired);
            }
            if copied_bytes > COPIED_BYTES_MAX {
                return Ok(cursor);
            }
        }
        self.reaper.pace.advance(shown.slots.len() as u64, deleted_count);
        Ok(next)
    }

    /// Deletes a key if it is still expired. `None` if it is not, or if damage in the key's buckets prevents the
    /// deletion: a retry would fail as well.
    fn reap_key(&self, key: &[u8], slot: &Slot) -> Result<Option<Outcome>, Error> {
        let is_same = &mut |found: Option<&Slot>| found == Some(slot);
        match self.write_pinned(self.key(key)?, &mut None, is_same) {
            Err(Error::Corrupt { .. }) => Ok(None),
            reaped => Ok(Some(reaped?).filter(|outcome| outcome.answer == WriteResult::Done(PriorState::Expired))),
        }
    }
}
