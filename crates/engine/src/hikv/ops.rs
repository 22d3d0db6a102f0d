//! What the engine offers.

use std::io::Read;
use std::thread;

use index::partitioned_hash::Cursor;
use pmem::{Dram, Medium};

use super::HiKv;
use super::item::{Item, Streamed};
use super::order::Order;
use super::read::{GROUP_COUNT, whole};
use super::snapshots::Unpublished;
use super::write::check_key;
use crate::{CheckStep, Damage, Engine, EngineStats, Error, OrderedEngine, Progress, SnapshotEngine, Version, Wanted};

impl<M: Medium, D: Dram, O: Order<M, D>> Engine for HiKv<M, D, O> {
    fn name(&self) -> &'static str {
        "hikv"
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        check_key(key)?;
        let _pin = epoch::pin();
        let Some((position, item)) = self.find(self.hasher.signature(key), key)? else {
            return Ok(false);
        };
        found(item.version(position), item.value);
        Ok(true)
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
        self.with_room(|| self.try_put(key, value))
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.check_put(key, value.len() as u64))?;
        items.chunks(GROUP_COUNT).try_for_each(|group| self.put_group(group))
    }

    fn put_from(&self, key: &[u8], len_bytes: u64, source: &mut dyn Read) -> Result<(), Error> {
        self.check_put(key, len_bytes)?;
        // The source may be slow: nobody is kept from freeing memory meanwhile.
        let item = Streamed::start(key, len_bytes, self.stamp(), source)?;
        let reservation = self.with_room(|| self.reserve(item.item_bytes()))?;
        let unpublished = Unpublished { reservation, stamp: item.epoch() };
        // SAFETY: the room was just reserved.
        unsafe { item.write(&self.medium, unpublished.position().offset()) }?;
        let signature = self.hasher.signature(key);
        let pin = epoch::pin();
        let waiting = self.publish(signature, key, unpublished)?;
        drop(pin);
        waiting.map_or(Ok(()), |item| self.publish_later(signature, key, item))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        check_key(key)?;
        self.check_writable()?;
        let signature = self.hasher.signature(key);
        loop {
            if let Some(deleted) = self.try_delete(signature, key)? {
                return Ok(deleted);
            }
            O::make_room(self, self.index.partition(signature))?;
        }
    }

    fn clear(&self) -> Result<(), Error> {
        self.check_writable()?;
        // Free space that is still unknown could not be told from what is freed now.
        self.finish_sweep()?;
        let no_snapshot = self.snapshots.exclude()?;
        self.order.suspend(self.disposal());
        let cleared = self.with_room(|| Ok(self.index.clear(self.cx())?));
        self.order.resume();
        drop(no_snapshot);
        let cleared = cleared?;
        self.cleared.retire(cleared, |cleared| cleared.free(self.cx()));
        // A caller that is pinned itself (it reads a value) leaves the freeing to the background.
        while !epoch::is_pinned() && !self.cleared.is_empty() {
            self.collect();
            thread::yield_now();
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, Error> {
        self.finish_sweep()?;
        Ok(self.index.len())
    }

    fn walk(&self, cursor: Cursor, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<Cursor, Error> {
        let _pin = epoch::pin();
        self.index.visit(&self.medium, cursor, |_, position| {
            // SAFETY: pinned since before the walk's step.
            let item = unsafe { Item::read(&self.medium, position) }?;
            whole(&item, position)?;
            each(item.key, item.value);
            Ok(())
        })
    }

    fn check(&self, cursor: Cursor, damaged: &mut dyn FnMut(Damage)) -> Result<CheckStep, Error> {
        self.check_step(cursor, damaged)
    }

    fn step(&self) -> Result<Progress, Error> {
        self.background_step()
    }

    fn tidy(&self) {
        self.collect();
    }

    fn close(&self) -> Result<(), Error> {
        self.write_image()
    }

    fn wanted(&self) -> Wanted {
        let space = if self.medium.is_writable() && self.runs_low() { Wanted::One } else { Wanted::Nobody };
        space.max(self.order.wanted())
    }

    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        O::operations(self)
    }

    fn snapshots(&self) -> &dyn SnapshotEngine {
        self
    }

    fn stats(&self) -> EngineStats {
        self.gather_stats()
    }
}
