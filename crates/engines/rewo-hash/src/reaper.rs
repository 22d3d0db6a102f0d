//! The reaper: deletes keys whose time has come.
//!
//! The table does not know when keys expire, so the reaper walks it, a segment a step. The reaper goes from the first to the
//! last, rests, and begins again if the walk met an item that expires, or one was put since it began. A store of which no item
//! expires is walked once after it was opened, and not again.
//!
//! What is due is deleted by a write that looks again, under the locks, whether the slot is still the same: a key that was renewed
//! stays.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::expectation::REST;
use engine::{Answer, Before, Error, Expectation, Progress};
use index::block_hash::Slot;
use index::segmented::Cursor;
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::background::Background;

/// What others may know of the reaper.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    pub(crate) expectation: Expectation,
    reaped_count: AtomicU64,
}

impl Reaper {
    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Walks a segment. A callback that is told of a key may use the store: the background is let go of before.
    pub(crate) fn reap(&self, mut background: MutexGuard<'_, Background>) -> Result<Progress, Error> {
        let cursor = match background.reap {
            Some(cursor) => cursor,
            None if self.reaper.expectation.begin() => Cursor::default(),
            None => return Ok(Progress::Idle),
        };
        let mut reaped = Vec::new();
        let walked = self.reap_segment(cursor, &mut reaped);
        // A segment that could not be walked is the next step's, too.
        let next = *walked.as_ref().unwrap_or(&cursor);
        background.reap = (!next.is_done()).then_some(next);
        let is_to_rest = next.is_done() && self.reaper.expectation.end();
        drop(background);
        // They are gone, whatever became of those behind them.
        self.reaper.reaped_count.fetch_add(reaped.len() as u64, Ordering::Relaxed);
        reaped.iter().for_each(|key| self.expired_hook.tell(key));
        Ok(match walked?.is_done() {
            false => Progress::More,
            true if is_to_rest => Progress::Rest(REST),
            true => Progress::Idle,
        })
    }

    fn reap_segment(&self, cursor: Cursor, reaped: &mut Vec<Vec<u8>>) -> Result<Cursor, Error> {
        let _pin = epoch::pin();
        let (shown, next) = self.table.visit(&self.medium, cursor)?;
        for (_, slot) in &shown.slots {
            // Damage is told to who asks for the key.
            let Ok(seen) = self.seen(slot) else { continue };
            if !seen.expiry.is_never() {
                self.reaper.expectation.expect();
            }
            let is_due = self.clock.is_past(seen.expiry) && self.whole(slot).is_ok();
            if is_due && self.reap_key(seen.key, slot)? {
                reaped.push(seen.key.to_vec());
            }
        }
        Ok(next)
    }

    /// False where it is not due any more, or damage to the key's buckets keeps it from being deleted: the next step would come to the same.
    fn reap_key(&self, key: &[u8], slot: &Slot) -> Result<bool, Error> {
        let is_same = &mut |found: Option<&Slot>| found == Some(slot);
        match self.write_pinned(self.key(key)?, &mut None, is_same) {
            Err(Error::Corrupt { .. }) => Ok(false),
            reaped => Ok(reaped? == Answer::Done(Before::Expired)),
        }
    }
}
