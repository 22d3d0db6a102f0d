//! What the reaper does (`reaper`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use index::Position;
use index::partitioned_hash::{Cursor, NEVER};
use pmem::Medium;

use super::reaper::{ROUND_INTERVAL_MS, Round};
use crate::canary;
use crate::item;
use crate::write::publish::Target;
use crate::{HiKv, Memory};
use engine::{Answer, Before, Error, Progress};

/// A sleep ends after this time, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Segments that a step looks at: a few lines of DRAM each.
const SEGMENTS_PER_STEP: usize = 64;
/// Keys that a step deletes: other background work waits as long as so many deletes take, about a millisecond. A segment
/// has a few times as many, and is visited as many times.
const REAPED_PER_STEP_MAX: usize = 256;

/// A key's entry whose item had expired when it was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expired {
    signature: u64,
    position: Position,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// When the next round is due, [`NEVER`] if nothing expires.
    fn round_due_ms(&self) -> u64 {
        match self.index.due() {
            NEVER => NEVER,
            _ if !self.medium.is_writable() => NEVER,
            due_ms => due_ms.max(self.reaper.not_before_ms.load(Ordering::SeqCst)),
        }
    }

    /// How long the background may sleep, unless a caller asks; `None` for ever.
    pub(crate) fn sleep_time(&self) -> Option<Duration> {
        self.reaper.is_wanted.store(false, Ordering::SeqCst);
        loop {
            let due_ms = self.round_due_ms();
            self.reaper.awaited_ms.store(due_ms, Ordering::SeqCst);
            if self.reaper.is_running.load(Ordering::SeqCst) {
                // Another thread's; what it leaves is known at its end.
                return Some(Duration::from_millis(ROUND_INTERVAL_MS));
            }
            if self.round_due_ms() >= due_ms {
                let left = || Duration::from_millis(due_ms.saturating_sub(self.clock.now_ms()));
                return (due_ms != NEVER).then(|| left().min(SLEEP_MAX));
            }
        }
    }

    /// Goes on with the round, or begins one if it is due. What was reaped goes to `reaped`, if there is a callback to be told.
    pub(crate) fn reap_step(
        &self,
        running: &mut Option<Round>,
        reaped: &mut Vec<Box<[u8]>>,
    ) -> Result<Progress, Error> {
        if running.is_none() && self.round_due_ms() > self.clock.now_ms() {
            return Ok(Progress::Idle);
        }
        let round = running.get_or_insert_with(|| self.begin_round());
        let _pin = epoch::pin();
        let mut expired = Vec::new();
        round.cursor = self.find_expired(round.cursor, &mut expired)?;
        self.delete_expired(&expired, reaped)?;
        if !round.cursor.is_done() {
            return Ok(Progress::More);
        }
        self.end_round(round);
        *running = None;
        Ok(Progress::Idle)
    }

    fn begin_round(&self) -> Round {
        self.reaper.is_running.store(true, Ordering::SeqCst);
        self.index.begin_due_round();
        Round { cursor: Cursor::default(), began: Instant::now() }
    }

    fn end_round(&self, round: &Round) {
        let rest = round.began.elapsed().max(Duration::from_millis(ROUND_INTERVAL_MS));
        self.reaper.not_before_ms.store(self.clock.after(rest).ms(), Ordering::SeqCst);
        self.reaper.is_running.store(false, Ordering::SeqCst);
    }

    /// Visits the next segments until one was due; what has expired there goes to `expired`, as far as there is room. The
    /// caller stays pinned while it uses that.
    pub(crate) fn find_expired(&self, cursor: Cursor, expired: &mut Vec<Expired>) -> Result<Cursor, Error> {
        let now_ms = self.clock.now_ms();
        self.index.visit_due(self.cx(), cursor, now_ms, SEGMENTS_PER_STEP, |signature, position| {
            // SAFETY: the index shows the position, and the caller is pinned.
            let item = unsafe { item::read(&self.medium, position) };
            // A damaged item stays, for whoever checks the store.
            let Some(item) = item.ok().filter(|item| !item.expiry.is_never()) else { return Ok::<_, Error>(NEVER) };
            if item.expiry.ms() > now_ms {
                return Ok(item.expiry.ms());
            }
            if !item.is_whole() {
                return Ok(NEVER);
            }
            if expired.len() == REAPED_PER_STEP_MAX {
                return Ok(now_ms);
            }
            expired.push(Expired { signature, position });
            Ok(NEVER)
        })
    }

    /// Deletes what was found, as far as it is still what was found. The caller has been pinned since.
    pub(crate) fn delete_expired(&self, expired: &[Expired], reaped: &mut Vec<Box<[u8]>>) -> Result<(), Error> {
        let is_told = self.expired_hook.is_set();
        if !expired.is_empty() {
            self.check_writable()?;
        }
        for &Expired { signature, position } in expired {
            // SAFETY: the caller's pin keeps the item, whether it was replaced meanwhile or not.
            let item = unsafe { item::read(&self.medium, position) }?;
            let renewed = self.medium.breaks(canary::REAPS_RENEWED);
            let target = if renewed {
                Target::any(signature, item.key)
            } else {
                Target::holding(signature, item.key, Some(position))
            };
            match self.publish(target, None) {
                Ok(Answer::Unexpected) => {}
                Ok(Answer::Done(before)) => {
                    self.reaper.reaped_count.fetch_add(1, Ordering::Relaxed);
                    if is_told && before == Before::Expired {
                        reaped.push(item.key.into());
                    }
                }
                // Later, then: nobody else knows of the item.
                Ok(Answer::QueueFull(_)) => self.index.lower_due_of(self.cx(), signature, item.expiry.ms()),
                Err(error) => {
                    self.index.lower_due_of(self.cx(), signature, item.expiry.ms());
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
