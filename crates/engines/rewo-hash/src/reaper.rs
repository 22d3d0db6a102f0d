//! The reaper: deletes keys whose time has come.
//!
//! The table does not know when keys expire, so the reaper walks it, a segment a step. The reaper goes from the first to the
//! last, rests, and begins again if the walk met an item that expires, or one was put since it began. A store of which no item
//! expires is walked once after it was opened, and not again.
//!
//! What is due is deleted by a write that looks again, under the locks, whether the slot is still the same: a key that was renewed
//! stays.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::{Answer, Before, Error, Progress};
use index::block_hash::Slot;
use index::segmented::Cursor;
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::RewoHash;
use crate::background::Background;

/// Between two walks.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// What others may know of the reaper.
#[derive(Debug)]
pub(crate) struct Reaper {
    /// An item that expires was met or put since the walk under way began.
    is_expected: AtomicBool,
    /// A walk has begun and not ended.
    is_walking: AtomicBool,
    reaped_count: AtomicU64,
}

impl Default for Reaper {
    /// What was put before the store was opened is not known.
    fn default() -> Reaper {
        Reaper { is_expected: true.into(), is_walking: false.into(), reaped_count: 0.into() }
    }
}

impl Reaper {
    /// An item that expires was put.
    pub(crate) fn expect(&self) {
        if !self.is_expected.load(Ordering::Relaxed) {
            self.is_expected.store(true, Ordering::Release);
        }
    }

    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }

    /// Whether there is something to walk for.
    pub(crate) fn is_awake(&self) -> bool {
        self.is_expected.load(Ordering::Acquire) || self.is_walking.load(Ordering::Acquire)
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Walks a segment. A callback that is told of a key may use the store: the background is let go of before.
    pub(crate) fn reap(&self, mut background: MutexGuard<'_, Background>) -> Result<Progress, Error> {
        let cursor = match background.reap {
            Some(cursor) => cursor,
            None if self.reaper.is_expected.swap(false, Ordering::AcqRel) => Cursor::default(),
            None => return Ok(Progress::Idle),
        };
        let mut reaped = Vec::new();
        let next = self.reap_segment(cursor, &mut reaped)?;
        background.reap = (!next.is_done()).then_some(next);
        self.reaper.is_walking.store(!next.is_done(), Ordering::Release);
        drop(background);
        self.reaper.reaped_count.fetch_add(reaped.len() as u64, Ordering::Relaxed);
        reaped.iter().for_each(|key| self.expired_hook.tell(key));
        Ok(match next.is_done() {
            false => Progress::More,
            true if self.reaper.is_expected.load(Ordering::Acquire) => Progress::Rest(REST),
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
                self.reaper.expect();
            }
            let is_due = self.clock.is_past(seen.expiry) && self.whole(slot).is_ok();
            if is_due && self.reap_key(seen.key, slot)? {
                reaped.push(seen.key.to_vec());
            }
        }
        Ok(next)
    }

    fn reap_key(&self, key: &[u8], slot: &Slot) -> Result<bool, Error> {
        let is_same = &mut |found: Option<&Slot>| found == Some(slot);
        Ok(self.write_pinned(self.key(key)?, &mut None, is_same)? == Answer::Done(Before::Expired))
    }
}
