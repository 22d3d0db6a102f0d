//! The implementation of `Engine`.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use engine::expectation::REST;
use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, EngineStats, Error,
    ExpiredHook, Expiry, Features, KeyChanges, Limits, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnFound,
    OnItem, Order, Outcome, PackedLookup, PriorState, Progress, Streamed, ValueBuffer, WantedThreads, WriteResult,
    may_write, with_space,
};
use epoch::Pinned;
use index::block_hash::Key;
use index::cached_table::Clear;
use index::segmented::Cursor as Place;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::check::CheckState;
use crate::reader::GROUP_COUNT;
use crate::writer::{Batch, Prepared};
use crate::{NAME, RewoHash};

impl<M: Medium, D: Dram> Identity for RewoHash<M, D> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn features(&self) -> Features {
        Features {
            order: Order::No,
            batch: true,
            snapshots: false,
            expiry: true,
            conditional: true,
            compaction: true,
            numbered_walk: true,
            salvage: false,
            distinct_versions: false,
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.writer.space().heap().region().superblock().uuid
    }

    fn has_trees(&self) -> bool {
        self.writer.space().heap().region().has_features(heap::FEATURE_TREES)
    }

    fn set_has_trees(&self) -> Result<(), Error> {
        may_write(self.medium())?;
        self.writer.space().heap().region().set_features(self.medium(), heap::FEATURE_TREES);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Reads for RewoHash<M, D> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.writer.reader().read(self.writer.keys().key(key)?, false, found)
    }

    fn supports_lookup(&self) -> bool {
        true
    }

    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, key: &[u8], buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.writer.reader().lookup_value(key, buffer)
    }

    fn get_part(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.writer.reader().read(self.writer.keys().key(key)?, true, found)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| Limits::check_key(key))?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            self.writer.reader().get_group(keys, |i, value| found(group * GROUP_COUNT + i, value))?;
        }
        Ok(())
    }
}

impl<M: Medium, D: Dram> Writes for RewoHash<M, D> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_item(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.put_item(key, value, expiry)
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        let writer = &self.writer;
        writer.begin()?;
        let key = writer.keys().key(key)?;
        Limits::check_value(len_bytes)?;
        let item = Streamed::start(key.bytes, expiry, len_bytes, 0, source)?;
        let reservation = self.with_space(|| writer.space().reserve(writer.medium(), item.item_bytes()))?;
        // SAFETY: the space was just reserved.
        unsafe { item.write(writer.medium(), reservation.place().offset) }?;
        let mut new = Some(Prepared::in_reserved(key, reservation, expiry));
        // A split may also find the region full.
        let outcome = self.with_space(|| writer.write(key, &mut new, &mut |_| true))?;
        self.hook().report(outcome);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.writer.begin()?;
        let outcome = self.writer.try_delete(self.writer.keys().key(key)?)?;
        Ok(self.hook().report(outcome) == WriteResult::Done(PriorState::Present))
    }

    fn clear(&self) -> Result<(), Error> {
        let writer = &self.writer;
        may_write(writer.medium())?;
        // Space that the sweep has not found yet could not be distinguished from space that is freed now.
        self.finish_sweep()?;
        let hidden = writer.reader().cache().hide_all(writer.medium());
        let cleared = self.with_space(|| Ok(writer.table().clear(writer.cx())?))?;
        hidden.into_iter().for_each(Clear::cleared);
        writer.space().retire_cleared(writer.medium(), cleared);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Atomic for RewoHash<M, D> {
    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.writer.begin()?;
        let key = self.writer.keys().key(key)?;
        loop {
            let written = self.with_space(|| self.writer.try_update(key, decide))?;
            let Some((changed, outcome)) = written else { return Ok(false) };
            if self.hook().report(outcome) != WriteResult::Unexpected {
                return Ok(changed);
            }
        }
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        may_write(self.medium())?;
        if ops.is_empty() && conditions.is_empty() { Ok(()) } else { self.apply(conditions, ops) }
    }
}

impl<M: Medium, D: Dram> Expires for RewoHash<M, D> {
    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.hook().set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.hook().set_item(callback);
    }

    fn clock(&self) -> &Clock {
        self.writer.keys().clock()
    }
}

/// Returns the position of the table's walk; `None` at the end.
fn place_of(cursor: &Cursor) -> Result<Option<Place>, Error> {
    match *cursor {
        Cursor::Start => Ok(Some(Place::default())),
        Cursor::Number(number) => Ok(Some(Place::from_number(number))),
        Cursor::After(_) => Err(Error::Unsupported { engine: NAME, what: "walks that continue after a key" }),
        Cursor::End => Ok(None),
    }
}

fn cursor_at(place: Place) -> Cursor {
    if place.is_done() { Cursor::End } else { Cursor::Number(place.number()) }
}

impl<M: Medium, D: Dram> Walks for RewoHash<M, D> {
    fn len(&self) -> Result<u64, Error> {
        self.finish_sweep()?;
        Ok(self.table().len())
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_skipping_damage(cursor, each, &mut Err)
    }

    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        let Some(place) = place_of(&cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let keys = self.writer.keys();
        keys.medium().once(|| {
            let (shown, next) = keys.table().visit(keys.medium(), place)?;
            shown.settle(keys.medium())?;
            for (_, slot) in &shown.slots {
                match keys.intact_contents(slot) {
                    Ok(seen) if keys.clock().is_past(seen.expiry) => {}
                    Ok(seen) => each(seen.key, seen.value, seen.expiry),
                    Err(error) => damaged(error)?,
                }
            }
            Ok(cursor_at(next))
        })
    }

    fn walk_stored(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        let Some(place) = place_of(&cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let keys = self.writer.keys();
        keys.medium().once(|| {
            let (shown, next) = keys.table().visit(keys.medium(), place)?;
            shown.settle(keys.medium())?;
            for (_, slot) in &shown.slots {
                each(keys.contents(slot)?.key);
            }
            Ok(cursor_at(next))
        })
    }

    fn has_passed(&self, cursor: &Cursor, key: &[u8]) -> bool {
        let table = self.writer.table();
        let has_passed = |number| table.has_passed(Place::from_number(number), table.signature(key));
        matches!(*cursor, Cursor::End) || matches!(*cursor, Cursor::Number(number) if has_passed(number))
    }

    fn key_changes(&self) -> Option<&KeyChanges> {
        Some(self.writer.key_changes())
    }

    fn random_cursor(&self, seed: u64) -> Cursor {
        Cursor::Number(seed | 1)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let mut state = match check.take_state::<CheckState>() {
            Some(state) => state,
            None => {
                self.finish_sweep()?;
                Box::new(CheckState::begin(self.medium(), self.compaction.pause(), damaged)?)
            }
        };
        let _background = self.background.pause_background();
        let step = || state.step(self.writer.keys(), self.writer.space().heap(), check, damaged);
        let is_done = self.medium().once(step);
        check.set_state(Some(state).filter(|_| !is_done));
        Ok(())
    }
}

impl<M: Medium, D: Dram> Maintenance for RewoHash<M, D> {
    fn step(&self) -> Result<Progress, Error> {
        self.background.step(&self.writer, || self.compaction_step())
    }

    fn assist_background(&self) -> Result<(), Error> {
        self.background.keep_pace(&self.writer)
    }

    fn wanted_threads(&self) -> WantedThreads {
        let is_space_short =
            || !self.background.is_swept() || self.writer.space().heap().runs_low() || self.may_compact();
        let is_wanted =
            self.medium().is_writable() && is_space_short() || self.writer.expiring().expectation().is_wanted();
        if is_wanted { WantedThreads::One } else { WantedThreads::None }
    }

    fn sleep_time(&self) -> Option<Duration> {
        self.writer.expiring().expectation().sleep_time().or(self.background.pre_evicts().then_some(REST))
    }

    fn run_idle_maintenance(&self) -> Progress {
        self.tidy_space(|| {
            self.writer.space().collect(self.medium());
            self.writer.space().has_garbage()
        })
    }

    fn compact(&self, progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        self.compact_now(progress)
    }
}

impl<M: Medium, D: Dram> Engine for RewoHash<M, D> {
    fn health(&self) -> Result<(), Error> {
        Ok(self.medium().health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium().sync()?)
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Puts a key, unless the value is too long.
    #[inline(always)]
    fn put_item(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.writer.begin()?;
        Limits::check_value(value.len() as u64)?;
        let key = self.writer.keys().key(key)?;
        let item = NewItem { key: key.bytes, value, expiry };
        let outcome = match self.writer.try_put(key, &item) {
            Err(error) if error.is_full() => self.put_in_reserved(key, &item)?,
            outcome => outcome?,
        };
        self.hook().report(outcome);
        Ok(())
    }

    /// Frees space and puts again. The caller is not pinned.
    #[cold]
    #[inline(never)]
    fn put_in_reserved(&self, key: Key<'_>, item: &NewItem<'_>) -> Result<Outcome, Error> {
        self.make_space()?;
        self.writer.try_put(key, item)
    }

    /// Applies a batch if its conditions hold. The last operation of a key counts.
    fn apply(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.writer.begin()?;
        Limits::check_batch(conditions, ops)?;
        if let Some(key) = BatchOp::single_delete(conditions, ops) {
            return if conditions.is_empty() { self.delete(key).map(drop) } else { self.delete_if(key, conditions) };
        }
        let batch = Batch::new(self.writer.keys(), conditions, ops)?;
        let expired = self.with_space(|| batch.attempt(&self.writer))?;
        expired.into_iter().for_each(|item| self.hook().notify(item));
        Ok(())
    }

    /// Deletes the key if all of these conditions hold, which are on the same key.
    fn delete_if(&self, key: &[u8], conditions: &[Condition<'_>]) -> Result<(), Error> {
        let key = self.writer.keys().key(key)?;
        while self.hook().report(self.writer.try_delete_if(key, conditions)?) == WriteResult::Unexpected {}
        Ok(())
    }

    /// Retries an attempt once if the region was full: space may have become free. The caller is not pinned, because
    /// its pin would block the freeing.
    fn with_space<R>(&self, attempt: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        with_space(attempt, || self.make_space())
    }

    /// Finishes the sweep, which may find free space, and gives readers some time to unpin.
    #[cold]
    fn make_space(&self) -> Result<(), Error> {
        self.finish_sweep()?;
        self.writer.space().wait_for_garbage(self.medium());
        Ok(())
    }

    /// Returns the callback for expired keys.
    fn hook(&self) -> &ExpiredHook {
        self.writer.expiring().hook()
    }

    pub(crate) fn finish_sweep(&self) -> Result<(), Error> {
        self.background.finish_sweep(&self.writer)
    }
}
