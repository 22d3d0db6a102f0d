//! The implementation of [`Engine`].

use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use epoch::Pinned;
use index::cached_table::Clear;
use index::partitioned_hash::Cursor as Place;
use pmem::Medium;

use super::HiKv;
use crate::check;
use crate::memory::Memory;
use crate::read::walk::{Part, cursor_at, place_of};
use crate::read::{COMPARED_FOR_PART_BYTES_MAX, GROUP_COUNT};
use crate::write::batch::BatchWrite;
use crate::write::conditional::Update;
use crate::write::multi_put::PutGroup;
use crate::write::{Prepared, WriteTarget, check_lengths};
use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, Early, EngineStats, Error,
    Expiry, Features, KeyChanges, Limits, Moment, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnFound, OnItem,
    OnResult, PackedLookup, Progress, QueueStats, ScanCursor, Streamed, ValueBuffer, Visit, WantedThreads, may_write,
};
use items::NewItem;

impl<M: Medium, D: Memory> Identity for HiKv<M, D> {
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
            distinct_versions: true,
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

impl<M: Medium, D: Memory> Reads for HiKv<M, D> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.writer.cache().read(self.writer.reader(), key, u64::MAX, found)
    }

    fn supports_lookup(&self) -> bool {
        !self.writer.cache().is_there()
    }

    fn lookup<'a>(&'a self, _pinned: Pinned<'a>, key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.writer.reader().lookup_value(key)
    }

    fn lookup_many<'a>(&'a self, _pinned: Pinned<'a>, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        self.writer.reader().lookup_group(&keys[..keys.len().min(GROUP_COUNT)], values)
    }

    fn get_part(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.writer.cache().read(self.writer.reader(), key, COMPARED_FOR_PART_BYTES_MAX, found)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| Limits::check_key(key))?;
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            self.writer
                .cache()
                .get_group(self.writer.reader(), keys, |i, value| found(group * GROUP_COUNT + i, value))?;
        }
        Ok(())
    }
}

impl<M: Medium, D: Memory> Writes for HiKv<M, D> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.writer.admit_put(key, value.len() as u64)?;
        self.writer.put(&NewItem { key, value, expiry: Expiry::NEVER })
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.writer.admit_put(key, value.len() as u64)?;
        self.writer.put(&NewItem { key, value, expiry })
    }

    fn prefetch(&self, keys: &[&[u8]]) {
        let _pin = epoch::pin();
        keys.chunks(GROUP_COUNT).for_each(|group| self.writer.reader().prefetch_group(group));
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| {
            check_lengths(key, value.len() as u64)?;
            self.writer.check_writable()
        })?;
        self.writer.bound_garbage();
        items.chunks(GROUP_COUNT).try_for_each(|group| {
            let mut first = Ok(());
            PutGroup::new(&self.writer, group)
                .put(&mut |_, done| first = std::mem::replace(&mut first, Ok(())).and(done));
            first
        })
    }

    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        self.writer.bound_garbage();
        for (number, group) in items.chunks(GROUP_COUNT).enumerate() {
            let mut on_result = |item, done| on_result(number * GROUP_COUNT + item, done);
            let puts = PutGroup::new(&self.writer, group);
            if puts.fits() { puts.put(&mut on_result) } else { puts.put_each(0..group.len(), &mut on_result) }
        }
    }

    /// Writes a batch: two fences for all items, and one lock for many slots.
    fn fill(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let ops: Vec<_> = items.iter().map(|&(key, value)| BatchOp::Put { key, value }).collect();
        self.write_batch(&ops)
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        self.writer.admit_put(key, len_bytes)?;
        let (medium, space) = (self.medium(), self.writer.space());
        // Not pinned while the source is read, because it may be slow: other threads can free memory.
        let stamp = self.writer.snapshots().stamp();
        let item = Streamed::start(key, expiry, len_bytes, stamp, source)?;
        let reservation = self.writer.with_space(|| space.reserve_for(medium, expiry, item.item_bytes()))?;
        // SAFETY: the space was just reserved.
        unsafe { item.write(medium, reservation.place().offset) }?;
        let target = WriteTarget::any(self.writer.reader().signature(key), key);
        self.writer.publish_waiting(epoch::pin(), target, Some(Prepared { reservation, expiry, stamp })).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Limits::check_key(key)?;
        self.writer.admit()?;
        self.writer.remove(key)
    }

    fn clear(&self) -> Result<(), Error> {
        let (writer, medium) = (&self.writer, self.medium());
        writer.check_writable()?;
        // Unknown free space could not be distinguished from the space that is freed now.
        writer.space().finish_sweep(writer.reader())?;
        let no_snapshot = writer.snapshots().exclude()?;
        writer.order().suspend(writer.disposal());
        let hidden = writer.cache().hide_all(medium);
        let cleared = writer.with_space(|| Ok(writer.reader().index().clear(writer.cx())?));
        writer.order().resume();
        drop(no_snapshot);
        let cleared = cleared?;
        hidden.into_iter().for_each(Clear::cleared);
        writer.space().retire_cleared(medium, cleared);
        Ok(())
    }
}

impl<M: Medium, D: Memory> Atomic for HiKv<M, D> {
    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        Limits::check_key(key)?;
        self.writer.admit()?;
        Update::of(&self.writer, key).by(decide)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        may_write(self.medium())?;
        if conditions.is_empty() && ops.is_empty() {
            return Ok(());
        }
        Limits::check_batch(conditions, ops)?;
        self.writer.admit()?;
        match BatchOp::single_delete(conditions, ops) {
            Some(key) if conditions.is_empty() => self.writer.remove(key).map(drop),
            Some(key) => Update::of(&self.writer, key).delete_if(conditions),
            None => BatchWrite::run(&self.writer, conditions, ops),
        }
    }
}

impl<M: Medium, D: Memory> Expires for HiKv<M, D> {
    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        Limits::check_key(key)?;
        self.writer.admit()?;
        Update::of(&self.writer, key).expire(expiry)
    }

    fn may_expire(&self) -> bool {
        self.writer.space().may_expire()
    }

    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.writer.reaper().hook().set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.writer.reaper().hook().set_item(callback);
    }

    fn clock(&self) -> &Clock {
        self.writer.reader().clock()
    }
}

impl<M: Medium, D: Memory> Walks for HiKv<M, D> {
    fn len(&self) -> Result<u64, Error> {
        self.writer.space().finish_sweep(self.writer.reader())?;
        Ok(self.writer.reader().index().len())
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let Some(place) = place_of(&cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        self.medium().once(|| {
            let part = Part::at(self.writer.reader(), place)?;
            part.each_item(each)?;
            Ok(cursor_at(part.next()))
        })
    }

    fn walk_stored(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        let Some(place) = place_of(&cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        self.medium().once(|| {
            let part = Part::at(self.writer.reader(), place)?;
            part.each_key(each)?;
            Ok(cursor_at(part.next()))
        })
    }

    fn has_passed(&self, cursor: &Cursor, key: &[u8]) -> bool {
        let reader = self.writer.reader();
        let has_passed = |number| reader.index().has_passed(Place::from_number(number), reader.signature(key));
        matches!(*cursor, Cursor::End) || matches!(*cursor, Cursor::Number(number) if has_passed(number))
    }

    fn key_changes(&self) -> Option<&KeyChanges> {
        Some(self.writer.key_changes())
    }

    fn random_cursor(&self, seed: u64) -> Cursor {
        Cursor::Number(seed | 1)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.medium().once(|| check::step(&self.writer, &self.compaction, check, damaged))
    }
}

impl<M: Medium, D: Memory> Maintenance for HiKv<M, D> {
    fn step(&self) -> Result<Progress, Error> {
        let order = self.writer.order().step(self.writer.source())?;
        let space = self.space_step()?;
        Ok(if order == Progress::More { Progress::More } else { space })
    }

    fn assist_background(&self) -> Result<(), Error> {
        self.keep_pace()
    }

    fn wanted_threads(&self) -> WantedThreads {
        let heap = self.writer.space().heap();
        let is_wanted =
            self.writer.reaper().is_wanted() || self.medium().is_writable() && (heap.runs_low() || self.may_compact());
        let space = if is_wanted { WantedThreads::One } else { WantedThreads::None };
        match self.writer.order().wanted() {
            WantedThreads::None => space,
            order => order.max(space),
        }
    }

    fn sleep_time(&self) -> Option<Duration> {
        self.writer.reaper().sleep_time(self.writer.reader())
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

impl<M: Medium, D: Memory> Engine for HiKv<M, D> {
    fn health(&self) -> Result<(), Error> {
        Ok(self.medium().health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium().sync()?)
    }

    fn close(&self) -> Result<(), Error> {
        self.write_image()
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        self.writer.order().is_offered().then_some(self as &dyn OrderedEngine)
    }

    fn snapshots(&self) -> Option<&dyn SnapshotEngine> {
        Some(self)
    }
}

impl<M: Medium, D: Memory> SnapshotEngine for HiKv<M, D> {
    fn take_snapshot(&self) -> Result<Moment, Error> {
        let now_ms = || self.writer.reader().clock().now_ms();
        self.writer.snapshots().take(self.medium(), self.writer.space().heap(), now_ms)
    }

    fn release_snapshot(&self, at: Moment) {
        self.writer.snapshots().release(self.writer.disposal(), at);
    }

    fn get_at(&self, at: Moment, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.writer.snapshots().reader(self.writer.reader(), at).get(key, found)
    }

    fn walk_at(
        &self,
        at: Moment,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        self.medium().once(|| self.writer.snapshots().reader(self.writer.reader(), at).walk(&cursor, each, damaged))
    }
}

impl<M: Medium, D: Memory> OrderedEngine for HiKv<M, D> {
    fn request_order(&self) -> Result<(), Error> {
        self.writer.order().request()
    }

    fn catch_up(&self, early: Early) -> Result<(), Error> {
        self.writer.order().catch_up(self.writer.source(), early)
    }

    fn apply(&self) -> Result<u64, Error> {
        self.writer.order().drain_one(self.writer.disposal()).map(|count| count as u64)
    }

    fn set_callers_apply(&self, is_enabled: bool) {
        self.writer.order().leave_to_callers(is_enabled);
    }

    fn queue_stats(&self) -> QueueStats {
        self.writer.order().queue_stats()
    }

    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        self.scans().scan(cursor, each)
    }

    fn scan_at(&self, at: Moment, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        self.scans().scan_at(&self.writer.snapshots().reader(self.writer.reader(), at), cursor, each)
    }

    fn count(&self, cursor: &mut ScanCursor, end: Bound<&[u8]>) -> Result<(u64, bool), Error> {
        self.scans().count(cursor, end, || self.writer.space().may_expire())
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        let _rest = self.compaction.pause();
        self.scans().check(damaged)
    }
}
