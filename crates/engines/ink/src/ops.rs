//! The engine's interface.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Compacting, CompactionReport, Condition, Cursor, Damage, Decide, EngineStats, Error, Expiry,
    Features, Figure, KeyChanges, Limits, OnCompaction, OnDamaged, OnExpired, OnExpiredItem, OnFound, OnItem, Order,
    OrderStats, Progress, WantedThreads, may_write,
};
use pbtree::Figures;
use pmem::{Dram, Medium};

use crate::copy::expiry_of;
use crate::error::from_tree;
use crate::writer::put;
use crate::{Ink, NAME};

impl<M: Medium, D: Dram> Identity for Ink<M, D> {
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
        self.tree().heap().region().superblock().uuid
    }

    fn has_trees(&self) -> bool {
        self.tree().heap().region().has_features(heap::FEATURE_TREES)
    }

    fn set_has_trees(&self) -> Result<(), Error> {
        may_write(self.tree().medium())?;
        self.tree().heap().region().set_features(self.tree().medium(), heap::FEATURE_TREES);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Reads for Ink<M, D> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        let copied = self.items().find(key)?;
        copied.iter().for_each(|copied| found(copied.witness(), copied.expiry, &copied.bytes));
        Ok(copied.is_some())
    }
}

impl<M: Medium, D: Dram> Writes for Ink<M, D> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_until(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.writer.write(key, put(value, expiry), &mut |held| Some(self.items().before(held))).map(drop)
    }

    fn put_from_until(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read, expiry: Expiry) -> Result<(), Error> {
        may_write(self.tree().medium())?;
        Limits::check_key(key)?;
        Limits::check_value(len_bytes)?;
        let mut value = vec![0; len_bytes as usize];
        source.read_exact(&mut value).map_err(Error::Source)?;
        self.put_until(key, &value, expiry)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.writer.remove(key)
    }

    fn clear(&self) -> Result<(), Error> {
        may_write(self.tree().medium())?;
        self.tree().clear(epoch::thread_index()).map_err(from_tree)
    }
}

impl<M: Medium, D: Dram> Atomic for Ink<M, D> {
    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.writer.update_by(key, decide)
    }

    fn write_batch_if(&self, conditions: &[Condition<'_>], ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.writer.apply(conditions, ops)
    }
}

impl<M: Medium, D: Dram> Expires for Ink<M, D> {
    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let expiry = self.items().read_with(key, expiry_of)?;
        Ok(expiry.filter(|expiry| !self.items().is_past(*expiry)))
    }

    fn on_expired(&self, callback: Option<Arc<OnExpired>>) {
        self.writer.reaper().hook().set(callback);
    }

    fn on_expired_item(&self, callback: Arc<OnExpiredItem>) {
        self.writer.reaper().hook().set_item(callback);
    }

    fn clock(&self) -> &Clock {
        self.items().clock()
    }
}

impl<M: Medium, D: Dram> Walks for Ink<M, D> {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.counted.count(self.tree())?.key_count)
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        self.items().walk_all(&cursor, &mut |key, value, expiry| {
            if !self.items().is_past(expiry) {
                each(key, value, expiry);
            }
        })
    }

    fn walk_stored(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8])) -> Result<Cursor, Error> {
        self.items().walk_all(&cursor, &mut |key, _, _| each(key))
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
            self.tree().medium().once(|| self.items().walk_all_skipping_damage(each, damaged))?;
        }
        Ok(Cursor::End)
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let figures = self.tree().medium().once(|| self.items().check(damaged))?;
        (0..figures.key_count).for_each(|_| check.count_item());
        check.set_state::<()>(None);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Maintenance for Ink<M, D> {
    fn step(&self) -> Result<Progress, Error> {
        let (tree, heap, medium) = (self.tree(), self.tree().heap(), self.tree().medium());
        if may_write(medium).is_err() {
            return Ok(Progress::Idle);
        }
        let swept = self.sweep.run(tree)?;
        if heap.prepare(medium, heap.ahead_bytes()) {
            return Ok(Progress::More);
        }
        let merged = if swept { self.writer.merging().step(tree) } else { Ok(Progress::Idle) };
        match merged {
            Ok(Progress::More) => merged,
            _ => self.writer.reap()?.or_else(|| merged)?.or_else(|| self.compaction_step()),
        }
    }

    fn assist_background(&self) -> Result<(), Error> {
        if self.writer.reaper().is_behind() && !epoch::is_pinned() { self.writer.reap().map(drop) } else { Ok(()) }
    }

    fn wanted_threads(&self) -> WantedThreads {
        let (heap, is_writable) = (self.tree().heap(), may_write(self.tree().medium()).is_ok());
        let is_unswept = || is_writable && !heap.is_swept();
        let is_wanted =
            !self.sweep.met_damage(self.tree()) && (is_unswept() || self.writer.merging().expectation().is_wanted());
        if is_wanted
            || is_writable && (heap.runs_low() || self.may_compact())
            || self.writer.reaper().expectation().is_wanted()
        {
            WantedThreads::One
        } else {
            WantedThreads::None
        }
    }

    fn sleep_time(&self) -> Option<Duration> {
        // Both calls also record that a thread watches the time.
        let merging =
            if self.sweep.met_damage(self.tree()) { None } else { self.writer.merging().expectation().sleep_time() };
        let times = [self.writer.reaper().expectation().sleep_time(), merging];
        times.into_iter().flatten().min()
    }

    fn run_idle_maintenance(&self) -> Progress {
        self.tidy_space(|| false)
    }

    fn compact(&self, progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        self.compact_now(progress)
    }
}

impl<M: Medium, D: Dram> Engine for Ink<M, D> {
    fn health(&self) -> Result<(), Error> {
        Ok(self.tree().medium().health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.tree().medium().sync()?)
    }

    fn stats(&self) -> EngineStats {
        let (heap, medium) = (self.tree().heap(), self.tree().medium());
        let space = heap.stats();
        let tree = self.counted.figures(self.tree());
        EngineStats {
            items: tree.key_count,
            taken_bytes: self.taken_bytes(),
            dram_bytes: self.dram_bytes(),
            swept: heap.is_swept(),
            reaped_count: self.writer.reaper().reaped_count(),
            compaction: self.compaction.stats(),
            counts: medium.counts(),
            order: Some(OrderStats::native(0)),
            figures: figures(&tree, self.writer.merging().merged_count()),
            ..EngineStats::of_space(space)
        }
    }

    fn dram_bytes(&self) -> u64 {
        self.tree().heap().stats().dram_bytes + self.tree().dram_bytes()
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        Some(self)
    }
}

fn figures(tree: &Figures, merged_count: u64) -> Vec<Figure> {
    vec![
        Figure::gauge("ink_levels", "Levels of the tree", tree.level_count as f64),
        Figure::gauge("ink_nodes", "Nodes of the tree", tree.node_count as f64),
        Figure::gauge("ink_dead_pairs", "Pairs of deleted keys still in leaves", tree.dead_count as f64),
        Figure::counter("ink_merged", "Sparse nodes merged since open", merged_count as f64),
    ]
}
