//! The implementation of [`Engine`].

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use epoch::Pinned;
use index::cached_table::Clear;
use pmem::Medium;

use super::read::COMPARED_FOR_PART_BYTES_MAX;
use super::read::group::GROUP_COUNT;
use super::write::check_key;
use super::{HiKv, Memory};
use crate::write::publish::{Prepared, WriteTarget};
use engine::Streamed;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, Engine, EngineStats, Error,
    Expiry, Features, Limits, OnCompaction, OnExpired, OnExpiredItem, OnItem, OnResult, OrderedEngine, PackedLookup,
    Progress, SnapshotEngine, ValueBuffer, WantedThreads, Witness, wait_for_readers,
};
use items::NewItem;

impl<M: Medium, D: Memory> Engine for HiKv<M, D> {
    fn name(&self) -> &'static str {
        "hikv"
    }

    fn features(&self) -> Features {
        Features {
            // Also for a store that was opened without order.
            order: engine::Order::Asked,
            batch: true,
            snapshots: true,
            expiry: true,
            conditional: true,
            compaction: true,
            numbered_walk: true,
            salvage: true,
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.region().superblock().uuid
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.read(key, u64::MAX, found)
    }

    fn supports_lookup(&self) -> bool {
        self.cache.is_none()
    }

    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.lookup_value(key)
    }

    fn lookup_many<'a>(&'a self, _pinned: Pinned<'a>, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        self.lookup_group(&keys[..keys.len().min(GROUP_COUNT)], values)
    }

    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.read(key, COMPARED_FOR_PART_BYTES_MAX, found)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            self.get_group(keys, |i, value| found(group * GROUP_COUNT + i, value))?;
        }
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check_put(key, value.len() as u64)?;
        self.bound_garbage();
        self.put_item(&NewItem { key, value, expiry: Expiry::NEVER })
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.check_put(key, value.len() as u64)?;
        self.bound_garbage();
        self.put_item(&NewItem { key, value, expiry })
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.check_put(key, value.len() as u64))?;
        self.bound_garbage();
        items.chunks(GROUP_COUNT).try_for_each(|group| {
            let mut first = Ok(());
            self.put_group(group, &mut |_, done| first = std::mem::replace(&mut first, Ok(())).and(done));
            first
        })
    }

    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        self.bound_garbage();
        for (number, group) in items.chunks(GROUP_COUNT).enumerate() {
            let mut on_result = |item, done| on_result(number * GROUP_COUNT + item, done);
            let fits = group.iter().all(|(key, value)| self.check_put(key, value.len() as u64).is_ok());
            if fits {
                self.put_group(group, &mut on_result)
            } else {
                self.put_each(group, 0..group.len(), &mut on_result)
            }
        }
    }

    /// Writes a batch: two fences for all items, and one lock for many slots.
    fn fill(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let ops: Vec<_> = items.iter().map(|&(key, value)| BatchOp::Put { key, value }).collect();
        self.write_batch(&ops)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.may_write()?;
        if conditions.is_empty() && ops.is_empty() {
            return Ok(());
        }
        Limits::check_batch(conditions, ops)?;
        self.check_writable()?;
        self.bound_garbage();
        match BatchOp::single_delete(conditions, ops) {
            Some(key) if conditions.is_empty() => self.remove_at_once(key).map(drop),
            Some(key) => self.delete_if(key, conditions),
            None => self.apply_batch(conditions, ops),
        }
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        self.check_put(key, len_bytes)?;
        self.bound_garbage();
        // Not pinned while the source is read, because it may be slow: other threads can free memory.
        let stamp = self.stamp();
        let item = Streamed::start(key, expiry, len_bytes, stamp, source)?;
        self.announce(expiry);
        let reservation = self.with_space(|| self.reserve(item.item_bytes()))?;
        // SAFETY: the space was just reserved.
        unsafe { item.write(&self.medium, reservation.place().offset) }?;
        let target = WriteTarget::any(self.hasher.signature(key), key);
        self.publish_waiting(epoch::pin(), target, Some(Prepared { reservation, expiry, stamp })).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        check_key(key)?;
        self.check_writable()?;
        self.bound_garbage();
        self.remove_at_once(key)
    }

    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        check_key(key)?;
        self.check_writable()?;
        self.bound_garbage();
        self.update_by(key, decide)
    }

    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        check_key(key)?;
        self.check_writable()?;
        self.bound_garbage();
        self.expire_at(key, expiry)
    }

    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        check_key(key)?;
        self.expiry_of(key)
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
        self.check_writable()?;
        // Unknown free space could not be distinguished from the space that is freed now.
        self.finish_sweep()?;
        let no_snapshot = self.snapshots.exclude()?;
        self.order.suspend_build(self.disposal());
        let hidden = self.hide_all();
        let cleared = self.with_space(|| Ok(self.index.clear(self.cx())?));
        self.order.resume_build();
        drop(no_snapshot);
        let cleared = cleared?;
        hidden.into_iter().for_each(Clear::cleared);
        self.cleared.retire(cleared, 0, |cleared| cleared.free(self.cx()));
        // A caller that is pinned itself (it reads a value) leaves the freeing to the background. So does a caller that
        // would wait for a slow reader.
        wait_for_readers(|| {
            self.collect();
            !self.cleared.is_empty() && !epoch::is_pinned()
        });
        Ok(())
    }

    fn len(&self) -> Result<u64, Error> {
        self.finish_sweep()?;
        Ok(self.index.len())
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_part(&cursor, each)
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
        HiKv::keep_pace(self)
    }

    fn health(&self) -> Result<(), Error> {
        Ok(self.medium.health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium.sync()?)
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

    fn close(&self) -> Result<(), Error> {
        self.write_image()
    }

    fn wanted_threads(&self) -> WantedThreads {
        let is_wanted =
            self.reaper.is_wanted() || self.medium.is_writable() && (self.heap.runs_low() || self.may_compact());
        let space = if is_wanted { WantedThreads::One } else { WantedThreads::None };
        match self.order.wanted() {
            WantedThreads::None => space,
            order => order.max(space),
        }
    }

    fn sleep_time(&self) -> Option<Duration> {
        HiKv::sleep_time(self)
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        self.order.is_offered().then_some(self as &dyn OrderedEngine)
    }

    fn snapshots(&self) -> Option<&dyn SnapshotEngine> {
        Some(self)
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }
}
