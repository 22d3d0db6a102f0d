//! The steps of the reaper (`reaper`).

use std::time::Duration;

use index::Position;
use index::partitioned_hash::{Cursor, NEVER};
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use crate::canary;
use crate::item;
use crate::memory::Memory;
use crate::reaper::Round;
use crate::space::Background;
use crate::write::{WriteTarget, Writer};
use engine::{COPIED_BYTES_MAX, Error, ExpiredItem, Outcome, Progress, WriteResult};

/// The pause before a blocked round continues: a writer fills its ticket, or another thread drains a group, in much
/// less.
const BLOCKED_REST: Duration = Duration::from_millis(1);
/// Segments that a step visits: a few lines of DRAM each.
const SEGMENTS_PER_STEP: usize = 64;
/// Keys that a step deletes: other background work waits for this many deletes, about a millisecond. A segment has a
/// few times as many keys, and is visited several times.
const REAPED_PER_STEP_MAX: usize = 256;
/// Groups that are drained from a full queue for one delete. More are needed only if other writers take each place that
/// becomes free.
const DRAINS_MAX: usize = 64;

/// The entry of a key whose item had expired when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expired {
    signature: u64,
    position: Position,
    due_ms: u64,
}

/// The extent of a delete of expired keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deleted {
    All,
    /// As many as can be copied for one call of the callback.
    Some,
    /// A queue of the order is full, and this thread cannot drain it now; or the key's removal has to wait until keys
    /// are counted.
    Blocked,
}

/// One step of the reaper.
pub(crate) struct ReapStep<'a, M, D: Dram> {
    writer: &'a Writer<M, D>,
    /// Copies of the reaped items, for the callback.
    reaped: Vec<ExpiredItem>,
    reaped_bytes: usize,
}

impl<'a, M: Medium, D: Memory> ReapStep<'a, M, D> {
    pub(crate) fn new(writer: &'a Writer<M, D>) -> ReapStep<'a, M, D> {
        ReapStep { writer, reaped: Vec::new(), reaped_bytes: 0 }
    }

    /// Does the step, and calls the callback for the keys that it deleted.
    pub(crate) fn run(mut self, mut background: MutexGuard<'_, Background>) -> Result<Progress, Error> {
        let progress = self.continue_round(&mut background.round);
        drop(background);
        let has_called_back = !self.reaped.is_empty();
        self.reaped.into_iter().for_each(|item| self.writer.reaper().hook().notify(item));
        // The step ends with a callback, which may have closed the store.
        if has_called_back { progress.map(|_| Progress::More) } else { progress }
    }

    /// Continues the round, or begins one if it is due.
    fn continue_round(&mut self, running: &mut Option<Round>) -> Result<Progress, Error> {
        let (reader, reaper) = (self.writer.reader(), self.writer.reaper());
        if running.is_none() && reaper.round_due_ms(reader) > reader.clock().now_ms() {
            return Ok(Progress::Idle);
        }
        let round = running.get_or_insert_with(|| reaper.begin_round(reader));
        let _pin = epoch::pin();
        let (mut visited_count, mut expired) = (0, Vec::new());
        let next = self.find_expired(round.cursor, &mut visited_count, &mut expired)?;
        let before_count = reaper.reaped_count();
        let deleted = self.delete_expired(&expired);
        reaper.pace().advance(visited_count, reaper.reaped_count() - before_count);
        match deleted? {
            Deleted::Blocked => return Ok(Progress::Rest(BLOCKED_REST)),
            Deleted::Some => return Ok(Progress::More),
            Deleted::All => round.cursor = next,
        }
        if !round.cursor.is_done() {
            return Ok(Progress::More);
        }
        reaper.end_round(reader.clock(), round);
        *running = None;
        Ok(Progress::Idle)
    }

    /// Visits the next segments until one was due, and counts the entries of that segment. Its expired entries go to
    /// `expired`, up to the limit of a step. The caller stays pinned while it uses them.
    pub(crate) fn find_expired(
        &self,
        cursor: Cursor,
        visited_count: &mut u64,
        expired: &mut Vec<Expired>,
    ) -> Result<Cursor, Error> {
        let now_ms = self.writer.reader().clock().now_ms();
        self.writer.reader().index().visit_due(
            self.writer.cx(),
            cursor,
            now_ms,
            SEGMENTS_PER_STEP,
            |signature, position| {
                *visited_count += 1;
                // SAFETY: the index passes the position, and the caller is pinned.
                let item = unsafe { item::read(self.writer.reader().medium(), position) };
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
            },
        )
    }

    /// Deletes the expired keys that still have the same item. The segment of a key that cannot be deleted now is
    /// visited again. The caller has been pinned since the keys were found.
    pub(crate) fn delete_expired(&mut self, expired: &[Expired]) -> Result<Deleted, Error> {
        for (number, next) in expired.iter().enumerate() {
            let deleted = match self.delete_one(next) {
                // Damage to a neighbour does not delay the other keys.
                Err(Error::Corrupt { .. }) => Ok(Deleted::All),
                Ok(Deleted::All) if self.reaped_bytes > COPIED_BYTES_MAX => Ok(Deleted::Some),
                deleted => deleted,
            };
            if !matches!(deleted, Ok(Deleted::All)) {
                let left = expired[number..].iter();
                left.for_each(|left| {
                    self.writer.reader().index().lower_due_of(self.writer.cx(), left.signature, left.due_ms)
                });
                return deleted;
            }
        }
        Ok(Deleted::All)
    }

    fn delete_one(&mut self, &Expired { signature, position, .. }: &Expired) -> Result<Deleted, Error> {
        self.writer.check_writable()?;
        // SAFETY: the caller's pin keeps the item, also if it was replaced since.
        let item = unsafe { item::read(self.writer.reader().medium(), position) }?;
        let Some(_removal) = self.writer.key_changes().removal(item.key) else { return Ok(Deleted::Blocked) };
        let mut target = WriteTarget::holding(signature, item.key, Some(position));
        if self.writer.reader().medium().breaks(canary::REAPS_RENEWED) {
            target = WriteTarget::any(signature, item.key);
        }
        for _ in 0..DRAINS_MAX {
            let Outcome { answer, expired } = self.writer.publish(target, None)?;
            match answer {
                WriteResult::Unexpected => return Ok(Deleted::All),
                WriteResult::Done(_) => {
                    self.writer.reaper().count_reaped();
                    self.reaped_bytes += expired.as_ref().map_or(0, ExpiredItem::len_bytes);
                    self.reaped.extend(expired);
                    return Ok(Deleted::All);
                }
                WriteResult::QueueFull(_) => {
                    let partition = self.writer.reader().index().partition(signature);
                    if !self.writer.order().drain_partition(self.writer.disposal(), partition)? {
                        break;
                    }
                }
            }
        }
        Ok(Deleted::Blocked)
    }
}
