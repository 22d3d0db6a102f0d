//! The steps of the reaper (`reaper`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use index::Position;
use index::partitioned_hash::{Cursor, NEVER};
use pmem::Medium;

use super::reaper::{BLOCKED_REST, ROUND_INTERVAL_MS, Round};
use crate::canary;
use crate::item;
use crate::order::Ordered;
use crate::write::publish::WriteTarget;
use crate::{HiKv, Memory};
use engine::{COPIED_BYTES_MAX, Error, ExpiredItem, Progress, WriteResult};

/// The longest sleep, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Segments that a step visits: a few lines of DRAM each.
const SEGMENTS_PER_STEP: usize = 64;
/// Keys that a step deletes: other background work waits for this many deletes, about a millisecond. A segment has a
/// few times as many keys, and is visited several times.
const REAPED_PER_STEP_MAX: usize = 256;
/// Groups that are drained from a full queue for one delete. More are needed only if other writers take each place that
/// becomes free.
const DRAINS_MAX: usize = 64;
/// The time for which a writer that should do a step waits for the thread that does one; then it continues.
const TURN_MAX: Duration = Duration::from_millis(1);

/// The entry of a key whose item had expired when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expired {
    signature: u64,
    position: Position,
    due_ms: u64,
}

/// Copies of the reaped items, for the callback.
#[derive(Debug, Default)]
pub(crate) struct Reaped {
    items: Vec<ExpiredItem>,
    len_bytes: usize,
}

impl Reaped {
    fn extend(&mut self, item: Option<ExpiredItem>) {
        self.len_bytes += item.as_ref().map_or(0, ExpiredItem::len_bytes);
        self.items.extend(item);
    }

    pub(crate) fn into_items(self) -> Vec<ExpiredItem> {
        self.items
    }
}

/// The extent of a delete of expired keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deleted {
    All,
    /// As many as can be copied for one call of the callback.
    Some,
    /// A queue of the order is full, and this thread cannot drain it now.
    Blocked,
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Returns the time at which the next round is due; [`NEVER`] if nothing expires.
    fn round_due_ms(&self) -> u64 {
        match self.reader.index().due() {
            NEVER => NEVER,
            _ if !self.reader.medium().is_writable() => NEVER,
            due_ms if self.reaper.pace.is_behind() => due_ms,
            due_ms => due_ms.max(self.reaper.not_before_ms.load(Ordering::SeqCst)),
        }
    }

    /// Returns how long the background may sleep unless a caller requests a step; `None` for no limit.
    pub(crate) fn sleep_time(&self) -> Option<Duration> {
        self.reaper.is_wanted.store(false, Ordering::SeqCst);
        loop {
            let due_ms = self.round_due_ms();
            self.reaper.awaited_ms.store(due_ms, Ordering::SeqCst);
            if self.reaper.is_running.load(Ordering::SeqCst) {
                // Another thread's round: the time of the next one is known at its end.
                return Some(Duration::from_millis(ROUND_INTERVAL_MS));
            }
            if self.round_due_ms() >= due_ms {
                let left = || Duration::from_millis(due_ms.saturating_sub(self.reader.clock().now_ms()));
                return (due_ms != NEVER).then(|| left().min(SLEEP_MAX));
            }
        }
    }

    /// Continues the round, or begins one if it is due. Copies of reaped items go to `reaped`, if there is a callback.
    pub(crate) fn reap_step(&self, running: &mut Option<Round>, reaped: &mut Reaped) -> Result<Progress, Error> {
        if running.is_none() && self.round_due_ms() > self.reader.clock().now_ms() {
            return Ok(Progress::Idle);
        }
        let round = running.get_or_insert_with(|| self.begin_round());
        let _pin = epoch::pin();
        let (mut visited_count, mut expired) = (0, Vec::new());
        let next = self.find_expired(round.cursor, &mut visited_count, &mut expired)?;
        let before_count = self.reaper.reaped_count();
        let deleted = self.delete_expired(&expired, reaped);
        self.reaper.pace.advance(visited_count, self.reaper.reaped_count() - before_count);
        match deleted? {
            Deleted::Blocked => return Ok(Progress::Rest(BLOCKED_REST)),
            Deleted::Some => return Ok(Progress::More),
            Deleted::All => round.cursor = next,
        }
        if !round.cursor.is_done() {
            return Ok(Progress::More);
        }
        self.end_round(round);
        *running = None;
        Ok(Progress::Idle)
    }

    /// Does a step for a writer, if the reaper is behind.
    pub(crate) fn keep_pace(&self) -> Result<(), Error> {
        let pace = &self.reaper.pace;
        if !pace.is_behind() || !self.swept.load(Ordering::Acquire) || epoch::is_pinned() {
            return Ok(());
        }
        let Some(background) = self.background.try_lock_for(TURN_MAX) else { return Ok(()) };
        let progress = self.reap_and_report(background)?;
        if progress == Progress::Idle && pace.is_behind() {
            pace.excuse();
        }
        Ok(())
    }

    fn begin_round(&self) -> Round {
        self.reaper.is_running.store(true, Ordering::SeqCst);
        self.reaper.pace.begin();
        self.reader.index().begin_due_round();
        Round { cursor: Cursor::default(), began: Instant::now() }
    }

    fn end_round(&self, round: &Round) {
        let rest = round.began.elapsed().max(Duration::from_millis(ROUND_INTERVAL_MS));
        self.reaper.not_before_ms.store(self.reader.clock().after(rest).ms(), Ordering::SeqCst);
        self.reaper.pace.end();
        self.reaper.is_running.store(false, Ordering::SeqCst);
    }

    /// Visits the next segments until one was due, and counts the entries of that segment. Its expired entries go to
    /// `expired`, up to the limit of a step. The caller stays pinned while it uses them.
    pub(crate) fn find_expired(
        &self,
        cursor: Cursor,
        visited_count: &mut u64,
        expired: &mut Vec<Expired>,
    ) -> Result<Cursor, Error> {
        let now_ms = self.reader.clock().now_ms();
        self.reader.index().visit_due(self.cx(), cursor, now_ms, SEGMENTS_PER_STEP, |signature, position| {
            *visited_count += 1;
            // SAFETY: the index passes the position, and the caller is pinned.
            let item = unsafe { item::read(self.reader.medium(), position) };
            // A damaged item stays, for a check of the store to report.
            let Some(item) = item.ok().filter(|item| !item.expiry.is_never()) else { return Ok::<_, Error>(NEVER) };
            if item.expiry.ms() > now_ms {
                return Ok(item.expiry.ms());
            }
            if !item.is_intact() {
                return Ok(NEVER);
            }
            if expired.len() == REAPED_PER_STEP_MAX {
                return Ok(now_ms);
            }
            expired.push(Expired { signature, position, due_ms: item.expiry.ms() });
            Ok(NEVER)
        })
    }

    /// Deletes the expired keys that still have the same item. The segment of a key that cannot be deleted now is
    /// visited again. The caller has been pinned since the keys were found.
    pub(crate) fn delete_expired(&self, expired: &[Expired], reaped: &mut Reaped) -> Result<Deleted, Error> {
        for (number, next) in expired.iter().enumerate() {
            let deleted = match self.delete_one(next, reaped) {
                // Damage to a neighbour does not delay the other keys.
                Err(Error::Corrupt { .. }) => Ok(Deleted::All),
                Ok(Deleted::All) if reaped.len_bytes > COPIED_BYTES_MAX => Ok(Deleted::Some),
                deleted => deleted,
            };
            if !matches!(deleted, Ok(Deleted::All)) {
                let left = expired[number..].iter();
                left.for_each(|left| self.reader.index().lower_due_of(self.cx(), left.signature, left.due_ms));
                return deleted;
            }
        }
        Ok(Deleted::All)
    }

    fn delete_one(
        &self,
        &Expired { signature, position, .. }: &Expired,
        reaped: &mut Reaped,
    ) -> Result<Deleted, Error> {
        self.check_writable()?;
        // SAFETY: the caller's pin keeps the item, also if it was replaced since.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        let target = match self.reader.medium().breaks(canary::REAPS_RENEWED) {
            true => WriteTarget::any(signature, item.key),
            false => WriteTarget::holding(signature, item.key, Some(position)),
        };
        for _ in 0..DRAINS_MAX {
            match self.publish(target, None)? {
                WriteResult::Unexpected => return Ok(Deleted::All),
                WriteResult::Done((_, copy)) => {
                    self.reaper.reaped_count.fetch_add(1, Ordering::Relaxed);
                    reaped.extend(copy);
                    return Ok(Deleted::All);
                }
                WriteResult::QueueFull(_)
                    if !Ordered::drain_partition(self, self.reader.index().partition(signature))? =>
                {
                    break;
                }
                WriteResult::QueueFull(_) => {}
            }
        }
        Ok(Deleted::Blocked)
    }
}
