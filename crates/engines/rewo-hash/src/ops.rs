//! The implementation of `Engine`.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use engine::expectation::REST;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, Engine, EngineStats, Error,
    Expiry, Features, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnItem, Order, PackedLookup, PriorState,
    Progress, Streamed, ValueBuffer, WantedThreads, Witness, WriteResult, wait_for_readers,
};
use epoch::Pinned;
use index::block_hash::Key;
use index::cached_table::Clear;
use index::segmented::Cursor as Place;
use pmem::{Dram, Medium};

use crate::cached::Known;
use crate::many::GROUP_COUNT;
use crate::read::check_key;
use crate::write::{Prepared, check_value};
use crate::{NAME, RewoHash};

impl<M: Medium, D: Dram> Engine for RewoHash<M, D> {
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
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.region().superblock().uuid
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.read(self.key(key)?, false, &mut |version, value, _| found(version, value))
    }

    fn supports_lookup(&self) -> bool {
        true
    }

    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, key: &[u8], buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.lookup_value(key, buffer)
    }

    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.read(self.key(key)?, true, &mut |version, value, _| found(version, value))
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            self.get_group(keys, |i, value| found(group * GROUP_COUNT + i, value))?;
        }
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_item(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.put_item(key, value, expiry)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        if ops.is_empty() && conditions.is_empty() { Ok(()) } else { self.apply(conditions, ops) }
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        self.may_write()?;
        self.bound_garbage();
        check_value(len_bytes)?;
        let key = self.key(key)?;
        let item = Streamed::start(key.bytes, expiry, len_bytes, 0, source)?;
        let reserve = || Ok(self.heap.reserve(&self.medium, item.item_bytes(), epoch::thread_index())?);
        let reservation = self.with_space(reserve)?;
        // SAFETY: the space was just reserved.
        unsafe { item.write(&self.medium, reservation.place().offset) }?;
        let mut new = Some(Prepared::in_reserved(key, reservation, expiry));
        // A split may also find the region full.
        self.with_space(|| self.write(key, &mut new, &mut |_| true)).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.may_write()?;
        self.bound_garbage();
        let key = self.key(key)?;
        let outcome = self.try_delete(key)?;
        Ok(self.report_expired(outcome) == WriteResult::Done(PriorState::Present))
    }

    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.update_by(key, decide)
    }

    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        self.expire_at(key, expiry)
    }

    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let mut expiry = None;
        self.read(self.key(key)?, true, &mut |_, _, held| expiry = Some(held))?;
        Ok(expiry)
    }

    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.expired_hook.set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.expired_hook.set_item(callback);
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn clear(&self) -> Result<(), Error> {
        self.may_write()?;
        // Space that the sweep has not found yet could not be distinguished from space that is freed now.
        self.finish_sweep()?;
        let hidden = self.hide_all();
        let cleared = self.with_space(|| Ok(self.table.clear(self.cx())?))?;
        hidden.into_iter().for_each(Clear::cleared);
        self.cleared.retire(cleared, 0, |cleared| cleared.free(self.cx()));
        // If the caller is pinned itself (it is reading a value), or if a reader takes long, the background frees the
        // items.
        wait_for_readers(|| {
            self.collect();
            !self.cleared.is_empty() && !epoch::is_pinned()
        });
        Ok(())
    }

    fn len(&self) -> Result<u64, Error> {
        self.finish_sweep()?;
        Ok(self.table.len())
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
        let place = match cursor {
            Cursor::Start => Place::default(),
            Cursor::Number(number) => Place::from_number(number),
            Cursor::After(_) => {
                return Err(Error::Unsupported { engine: NAME, what: "walks that continue after a key" });
            }
            Cursor::End => return Ok(Cursor::End),
        };
        let _pin = epoch::pin();
        let (shown, next) = self.table.visit(&self.medium, place)?;
        shown.settle(&self.medium)?;
        for (_, slot) in &shown.slots {
            match self.intact_contents(slot) {
                Ok(seen) if self.clock.is_past(seen.expiry) => {}
                Ok(seen) => each(seen.key, seen.value, seen.expiry),
                Err(error) => damaged(error)?,
            }
        }
        Ok(if next.is_done() { Cursor::End } else { Cursor::Number(next.number()) })
    }

    fn random_cursor(&self, seed: u64) -> Cursor {
        Cursor::Number(seed | 1)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.check_step(check, damaged)
    }

    fn step(&self) -> Result<Progress, Error> {
        self.background_step()
    }

    fn assist_background(&self) -> Result<(), Error> {
        RewoHash::keep_pace(self)
    }

    fn tidy(&self) -> Progress {
        self.tidy_space(|| {
            self.collect();
            self.has_garbage()
        })
    }

    fn compact(&self, progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        self.compact_now(progress)
    }

    fn health(&self) -> Result<(), Error> {
        Ok(self.medium.health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium.sync()?)
    }

    fn wanted_threads(&self) -> WantedThreads {
        if self.is_wanted() { WantedThreads::One } else { WantedThreads::None }
    }

    fn sleep_time(&self) -> Option<Duration> {
        self.reaper.expectation.sleep_time().or(self.pre_evicts.then_some(REST))
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }
}

impl<M: Medium, D: Dram> RewoHash<M, D> {
    /// Calls `found` with the key's item, unless it has expired.
    #[inline(always)]
    pub(crate) fn read(
        &self,
        key: Key<'_>,
        is_part: bool,
        found: &mut dyn FnMut(Witness, &[u8], Expiry),
    ) -> Result<bool, Error> {
        let permit = match self.lookup_copy(key, found) {
            Known::Certain(is_there) => return Ok(is_there),
            Known::Unknown(permit) => permit,
        };
        let _pin = epoch::pin();
        let Some(slot) = self.find(key)? else { return Ok(false) };
        let Some(seen) = self.readable_contents(&slot, is_part)? else { return Ok(false) };
        if !is_part {
            self.admit(permit, key, || seen.copy());
        }
        found(seen.witness(), seen.value, seen.expiry);
        Ok(true)
    }
}
