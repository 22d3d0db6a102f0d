//! The implementation of `Engine`.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrayvec::ArrayVec;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, Engine, EngineStats, Error,
    Expiry, Features, Figure, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnItem, OnResult, Order, OrderStats,
    OrderedEngine, PackedLookup, Progress, ValueBuffer, WantedThreads, Witness,
};
use epoch::Pinned;
use index::bplus_tree::GROUP_COUNT;
use items::NewItem;
use pmem::{Dram, Medium};

use crate::record::witness;
use crate::write::{check_key, check_value};
use crate::{NAME, Pmekv};

impl<M: Medium, D: Dram> Engine for Pmekv<M, D> {
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
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.region().superblock().uuid
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        check_key(key)?;
        let _pin = epoch::pin();
        let Some((position, item)) = self.find_live(key)? else { return Ok(false) };
        self.verify_value(position, &item)?;
        found(witness(position, &item), item.value);
        Ok(true)
    }

    fn supports_lookup(&self) -> bool {
        true
    }

    fn lookup<'a>(&'a self, pinned: Pinned<'a>, key: &[u8], _buffer: &'a mut ValueBuffer) -> PackedLookup<'a> {
        self.lookup_value(pinned, key)
    }

    fn lookup_many<'a>(&'a self, pinned: Pinned<'a>, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        self.lookup_group(pinned, keys, values)
    }

    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Witness, &[u8])) -> Result<bool, Error> {
        self.get(key, found)
    }

    fn multi_get(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        self.read_many(keys, found)
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        let mut first = Ok(());
        self.multi_put_each(items, &mut |_, done| first = std::mem::replace(&mut first, Ok(())).and(done));
        first
    }

    fn multi_put_each(&self, items: &[(&[u8], &[u8])], on_result: &mut OnResult<'_>) {
        for (group, items) in items.chunks(GROUP_COUNT).enumerate() {
            let puts: ArrayVec<_, GROUP_COUNT> = items.iter().map(|&(key, value)| (key, Some(value))).collect();
            self.change_group(&puts, &mut |number, done| on_result(group * GROUP_COUNT + number, done.map(drop)));
        }
    }

    fn multi_delete_each(&self, keys: &[&[u8]], on_result: &mut OnResult<'_, bool>) {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let deletes: ArrayVec<_, GROUP_COUNT> = keys.iter().map(|&key| (key, None)).collect();
            self.change_group(&deletes, &mut |number, done| on_result(group * GROUP_COUNT + number, done));
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_until(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.put_item(&NewItem { key, value, expiry }).map(drop)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.apply(conditions, ops)
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        check_value(len_bytes)?;
        self.put_streamed(key, len_bytes, source, expiry)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.remove(key)
    }

    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.update_by(key, decide)
    }

    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        self.expire_at(key, expiry)
    }

    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        check_key(key)?;
        let _pin = epoch::pin();
        Ok(self.find_live(key)?.map(|(_, item)| item.expiry))
    }

    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.reaper.hook().set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.reaper.hook().set_item(callback);
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn clear(&self) -> Result<(), Error> {
        self.remove_all()
    }

    fn len(&self) -> Result<u64, Error> {
        Ok(self.tree.len())
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.walk_all(&cursor, &mut |key, value, expiry| {
            if !self.is_past(expiry) {
                each(key, value, expiry);
            }
        })
    }

    fn walk_skipping_damage(
        &self,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        if cursor == Cursor::Start {
            self.walk_all_skipping_damage(each, damaged)?;
        }
        Ok(Cursor::End)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.check_all(check, damaged)
    }

    fn step(&self) -> Result<Progress, Error> {
        if !self.medium.is_writable() {
            return Ok(Progress::Idle);
        }
        if self.wants_checkpoint() {
            self.go_on_without(self.checkpoint())?;
        }
        if self.heap.prepare(&self.medium, self.heap.ahead_bytes()) {
            return Ok(Progress::More);
        }
        self.reap()?.or_else(|| self.compaction_step())
    }

    fn assist_background(&self) -> Result<(), Error> {
        if self.reaper.is_behind() && !epoch::is_pinned() { self.reap().map(drop) } else { Ok(()) }
    }

    fn tidy(&self) -> Progress {
        self.tidy_space(|| {
            self.tree.collect();
            self.collect();
            !self.limbo.is_empty()
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

    /// Makes a checkpoint, so that the next opening finds all keys in order, and no log.
    fn close(&self) -> Result<(), Error> {
        if !self.medium.is_writable() || self.batches.is_learnt().is_err() {
            return Ok(());
        }
        match self.checkpoint() {
            Err(error) if error.is_full() => Ok(()),
            done => done,
        }
    }

    fn wanted_threads(&self) -> WantedThreads {
        let is_behind = || self.wants_checkpoint() || self.heap.runs_low() || self.may_compact();
        let is_wanted = self.medium.is_writable() && is_behind() || self.reaper.expectation().is_wanted();
        if is_wanted { WantedThreads::One } else { WantedThreads::None }
    }

    fn sleep_time(&self) -> Option<Duration> {
        self.reaper.expectation().sleep_time()
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        Some(self)
    }

    fn stats(&self) -> EngineStats {
        let space = self.heap.stats();
        let tree_bytes = self.tree.dram_bytes();
        EngineStats {
            items: self.tree.len(),
            taken_bytes: self.taken_bytes(),
            dram_bytes: space.dram_bytes + tree_bytes,
            swept: self.heap.is_swept(),
            reaped_count: self.reaper.reaped_count(),
            compaction: self.compaction.stats(),
            garbage_count: self.limbo.len(),
            garbage_bytes: self.limbo.bytes(),
            held_up_count: self.held_up.count(),
            counts: self.medium.counts(),
            order: Some(OrderStats::native(tree_bytes)),
            figures: self.figures(),
            ..EngineStats::of_space(space)
        }
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    fn figures(&self) -> Vec<Figure> {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed) as f64;
        vec![
            Figure::gauge(
                "pmekv_log_entries",
                "Log entries since the last checkpoint",
                self.lanes.entry_count() as f64,
            ),
            Figure::gauge("pmekv_nodes", "Nodes of the last checkpoint", read(&self.last_checkpoint.node_count)),
            Figure::gauge(
                "pmekv_checkpoints",
                "Checkpoints since the store was made",
                read(&self.last_checkpoint.number),
            ),
            Figure::gauge(
                "pmekv_damaged_records",
                "Unreadable records that made the last checkpoint fail: the log is not shortened",
                read(&self.last_checkpoint.damaged_count),
            ),
        ]
    }
}
