//! The implementation of `Engine`.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, EngineStats, Error, Expiry,
    Features, KeyChanges, Limits, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnFound, OnItem, OnResult, Order,
    OrderStats, PackedLookup, Progress, ScanCursor, ValueBuffer, Visit, WantedThreads,
};
use epoch::Pinned;
use index::bplus_tree::GROUP_COUNT;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::writer::{Batch, GroupWrite};
use crate::{NAME, Pmekv};

impl<M: Medium, D: Dram> Identity for Pmekv<M, D> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn features(&self) -> Features {
        Features {
            order: Order::Native,
            batch: true,
            snapshots: false,
            expiry: true,
            conditional: true,
            compaction: true,
            numbered_walk: false,
            salvage: false,
            distinct_versions: true,
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.reader().region().heap().region().superblock().uuid
    }

    fn has_trees(&self) -> bool {
        self.reader().region().heap().region().has_features(heap::FEATURE_TREES)
    }

    fn set_has_trees(&self) -> Result<(), Error> {
        let region = self.reader().region();
        region.may_write()?;
        region.heap().region().set_features(region.medium(), heap::FEATURE_TREES);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Reads for Pmekv<M, D> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        Limits::check_key(key)?;
        self.reader().get(key, found)
    }

    fn supports_lookup(&self) -> bool {
        true
    }

    fn lookup<'a>(&'a self, pinned: Pinned<'a>, key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.reader().lookup_value(pinned, key)
    }

    fn lookup_many<'a>(&'a self, pinned: Pinned<'a>, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        self.reader().lookup_group(pinned, keys, values)
    }

    fn get_part(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        self.get(key, found)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| Limits::check_key(key))?;
        self.reader().read_many(keys, found)
    }
}

impl<M: Medium, D: Dram> Writes for Pmekv<M, D> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_until(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.writer.put_item(&NewItem { key, value, expiry }).map(drop)
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let mut first = Ok(());
        self.multi_put_each(items, &mut |_, done| first = std::mem::replace(&mut first, Ok(())).and(done));
        first
    }

    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        for (group, items) in items.chunks(GROUP_COUNT).enumerate() {
            let puts: ArrayVec<_, GROUP_COUNT> = items.iter().map(|&(key, value)| (key, Some(value))).collect();
            GroupWrite::new(&self.writer, &puts)
                .run(&mut |number, done| on_result(group * GROUP_COUNT + number, done.map(drop)));
        }
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        self.writer.put_streamed(key, len_bytes, source, expiry)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.writer.remove(key)
    }

    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let deletes: ArrayVec<_, GROUP_COUNT> = keys.iter().map(|&key| (key, None)).collect();
            GroupWrite::new(&self.writer, &deletes)
                .run(&mut |number, done| on_result(group * GROUP_COUNT + number, done));
        }
    }

    fn clear(&self) -> Result<(), Error> {
        self.writer.clear()
    }
}

impl<M: Medium, D: Dram> Atomic for Pmekv<M, D> {
    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.writer.update_by(key, decide)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        Batch::new(&self.writer, conditions, ops).apply()
    }
}

impl<M: Medium, D: Dram> Expires for Pmekv<M, D> {
    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.writer.reaper().hook().set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.writer.reaper().hook().set_item(callback);
    }

    fn clock(&self) -> &Clock {
        self.reader().contents().clock()
    }
}

impl<M: Medium, D: Dram> Walks for Pmekv<M, D> {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.reader().tree().len())
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let mut each = |key: &[u8], value: &[u8], expiry| {
            if !self.reader().contents().is_past(expiry) {
                each(key, value, expiry);
            }
        };
        self.medium().once(|| self.reader().walk(&cursor, &mut each))
    }

    fn walk_stored(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        self.medium().once(|| self.reader().walk(&cursor, &mut |key, _, _| each(key)))
    }

    fn has_passed(&self, cursor: &Cursor, key: &[u8]) -> bool {
        matches!(cursor, Cursor::End) || matches!(cursor, Cursor::After(last) if key <= &last[..])
    }

    fn key_changes(&self) -> Option<&KeyChanges> {
        Some(self.writer.key_changes())
    }

    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        if cursor == Cursor::Start {
            for lost in &self.lost {
                damaged(Error::Corrupt { offset: lost.offset, what: lost.what })?;
            }
            self.medium().once(|| self.reader().contents().walk_intact(each, damaged))?;
        }
        Ok(Cursor::End)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.medium().once(|| self.reader().contents().check_records(check, damaged))?;
        self.writer.checkpointer().check(damaged)?;
        check.set_state::<()>(None);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Maintenance for Pmekv<M, D> {
    fn step(&self) -> Result<Progress, Error> {
        let region = self.reader().region();
        if !region.medium().is_writable() {
            return Ok(Progress::Idle);
        }
        if self.writer.checkpointer().is_wanted() {
            region.continue_without_checkpoint(self.checkpoint())?;
        }
        if region.heap().prepare(region.medium(), region.heap().ahead_bytes()) {
            return Ok(Progress::More);
        }
        self.writer.reap()?.or_else(|| self.compaction_step())
    }

    fn assist_background(&self) -> Result<(), Error> {
        if self.writer.reaper().is_behind() && !epoch::is_pinned() { self.writer.reap().map(drop) } else { Ok(()) }
    }

    fn wanted_threads(&self) -> WantedThreads {
        let (region, reaper) = (self.reader().region(), self.writer.reaper());
        let is_behind = || self.writer.checkpointer().is_wanted() || region.heap().runs_low() || self.may_compact();
        let is_wanted = region.medium().is_writable() && is_behind() || reaper.expectation().is_wanted();
        if is_wanted { WantedThreads::One } else { WantedThreads::None }
    }

    fn sleep_time(&self) -> Option<Duration> {
        self.writer.reaper().expectation().sleep_time()
    }

    fn run_idle_maintenance(&self) -> Progress {
        self.tidy_space(|| {
            self.reader().tree().collect();
            self.reader().region().collect()
        })
    }

    fn compact(&self, progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        self.compact_now(progress)
    }
}

impl<M: Medium, D: Dram> Engine for Pmekv<M, D> {
    fn health(&self) -> Result<(), Error> {
        Ok(self.reader().region().medium().health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.reader().region().medium().sync()?)
    }

    /// Makes a checkpoint, so that the next opening finds all keys in order, and no log.
    fn close(&self) -> Result<(), Error> {
        if !self.reader().region().medium().is_writable() || self.reader().check_batches_applied().is_err() {
            return Ok(());
        }
        match self.checkpoint() {
            Err(error) if error.is_full() => Ok(()),
            done => done,
        }
    }

    fn stats(&self) -> EngineStats {
        let (of_region, tree_bytes) = (self.reader().region().stats(), self.reader().tree().dram_bytes());
        EngineStats {
            items: self.reader().tree().len(),
            taken_bytes: self.taken_bytes(),
            dram_bytes: of_region.dram_bytes + tree_bytes,
            reaped_count: self.writer.reaper().reaped_count(),
            compaction: self.compaction.stats(),
            order: Some(OrderStats::native(tree_bytes)),
            figures: self.writer.checkpointer().figures(),
            ..of_region
        }
    }

    fn dram_bytes(&self) -> u64 {
        self.reader().region().stats().dram_bytes + self.reader().tree().dram_bytes()
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        Some(self)
    }
}

impl<M: Medium, D: Dram> OrderedEngine for Pmekv<M, D> {
    fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        self.reader().scan(cursor, each)
    }

    fn check_order(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        self.writer.checkpointer().lanes().check_tree(self.reader(), damaged);
        Ok(self.reader().tree().len())
    }
}
