//! What the engine offers: points, keys that expire, conditional writes, and walks by the number of a slot.

use engine::{
    Check, Clock, Cursor, Damage, Decide, Decision, Engine, EngineStats, Error, Features, Held, Order, Progress, Show,
    Version, Wanted,
};
use items::{Expiry, NewItem};
use pmem::{Dram, Medium, MediumError};

use crate::{SLOT_BYTES, SLOT_COUNT, Toy};

impl<M: Medium, D: Dram> Engine for Toy<M, D> {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn features(&self) -> Features {
        Features {
            order: Order::No,
            batch: false,
            snapshots: false,
            expiry: true,
            conditional: true,
            compaction: false,
            numbered_walk: true,
            salvage: false,
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.superblock().uuid
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        let value = self.contents.read().get(key).filter(|(_, expiry)| !self.clock.is_past(*expiry)).cloned();
        let Some((value, _)) = value else { return Ok(false) };
        let checksum = pmem::Checksum::default().update(&value).value();
        found(Version::new([checksum.into(), value.len() as u64]), &value);
        Ok(true)
    }

    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        self.get(key, found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.put_until(key, value, Expiry::NEVER)
    }

    fn put_until(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        self.change(key, &mut |_| Decision::PutUntil(value.into(), expiry)).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let mut was_there = false;
        self.change(key, &mut |held| {
            was_there = held.is_some();
            Decision::Delete
        })?;
        Ok(was_there)
    }

    fn update<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        self.change(key, decide)
    }

    fn expire(&self, key: &[u8], expiry: Expiry) -> Result<bool, Error> {
        let mut value = None;
        self.get(key, &mut |_, found| value = Some(found.to_vec()))?;
        let Some(value) = value else { return Ok(false) };
        self.change(key, &mut |held| match held {
            Some(_) => Decision::PutUntil(value.as_slice().into(), expiry),
            None => Decision::Keep,
        })
    }

    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        Ok(self.contents.read().get(key).map(|(_, expiry)| *expiry).filter(|expiry| !self.clock.is_past(*expiry)))
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn clear(&self) -> Result<(), Error> {
        self.check_writable()?;
        let mut writers = self.writers.lock();
        self.heap.set_generation(&self.medium, self.heap.generation().wrapping_add(1));
        writers.clear();
        self.contents.write().clear();
        Ok(())
    }

    fn len(&self) -> Result<u64, Error> {
        Ok(self.contents.read().len() as u64)
    }

    fn walk(&self, cursor: Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        let slot = match cursor {
            Cursor::Start => 0,
            Cursor::Number(slot) => slot,
            Cursor::After(_) | Cursor::End => SLOT_COUNT,
        };
        let writers = self.writers.lock();
        let item = if slot < SLOT_COUNT { self.slots.item(&self.medium, slot, self.stamp())? } else { None };
        let shown = item.map(|item| (item.key.to_vec(), item.value.to_vec(), item.expiry));
        drop(writers);
        if let Some((key, value, expiry)) = shown.filter(|(.., expiry)| !self.clock.is_past(*expiry)) {
            each(&key, &value, expiry);
        }
        Ok(if slot + 1 < SLOT_COUNT { Cursor::Number(slot + 1) } else { Cursor::End })
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let _writers = self.writers.lock();
        for slot in 0..SLOT_COUNT {
            match self.slots.item(&self.medium, slot, self.stamp()) {
                Ok(item) => item.into_iter().for_each(|_| check.count_item()),
                Err(heap::HeapError::Damaged { offset, what }) => damaged(Damage { offset, what: what.into() }),
                Err(error) => return Err(error.into()),
            }
        }
        check.go_on_with::<()>(None);
        Ok(())
    }

    fn step(&self) -> Result<Progress, Error> {
        let expired = |(_, expiry): &(Vec<u8>, Expiry)| self.clock.is_past(*expiry);
        let key = self.contents.read().iter().find(|(_, value)| expired(value)).map(|(key, _)| key.clone());
        match key.filter(|_| self.medium.is_writable()) {
            Some(key) => {
                self.change(&key, &mut |held| held.map_or(Decision::Delete, |_| Decision::Keep)).map(|_| Progress::More)
            }
            None => Ok(Progress::Idle),
        }
    }

    fn health(&self) -> Result<(), Error> {
        Ok(self.medium.health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium.sync()?)
    }

    fn wanted(&self) -> Wanted {
        Wanted::Nobody
    }

    fn stats(&self) -> EngineStats {
        let space = self.heap.stats();
        EngineStats {
            items: self.contents.read().len() as u64,
            region_bytes: space.region_bytes,
            used_bytes: space.mark_bytes,
            live_bytes: space.live_bytes,
            free_bytes: space.free_bytes,
            taken_bytes: self.medium.allocated_bytes().unwrap_or(space.region_bytes),
            dram_bytes: space.dram_bytes,
            swept: true,
            counts: self.medium.counts(),
            ..EngineStats::default()
        }
    }
}

impl<M: Medium, D: Dram> Toy<M, D> {
    fn check_writable(&self) -> Result<(), Error> {
        self.medium.health()?;
        if self.medium.is_writable() { Ok(()) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Changes the key as `decide` says; true if anything changed. What has expired is shown as absent, and goes.
    fn change(&self, key: &[u8], decide: &mut Decide<'_, '_>) -> Result<bool, Error> {
        self.check_writable()?;
        let mut writers = self.writers.lock();
        let held = self.contents.read().get(key).cloned();
        let live = held.as_ref().filter(|(_, expiry)| !self.clock.is_past(*expiry));
        let shown = live.map(|(value, expiry)| Held { value, expiry: *expiry });
        let (value, expiry) = match decide(shown) {
            Decision::Keep => return Ok(false),
            Decision::Delete => {
                let Some(slot) = writers.remove(key) else { return Ok(false) };
                self.slots.change(&self.medium, slot, None)?;
                self.contents.write().remove(key);
                return Ok(true);
            }
            Decision::Put(value) => (value, live.map_or(Expiry::NEVER, |(_, expiry)| *expiry)),
            Decision::PutUntil(value, expiry) => (value, expiry),
        };
        let item = NewItem { key, value: &value, expiry };
        if item.item_bytes() > SLOT_BYTES {
            return Err(MediumError::Limit { wanted_bytes: item.item_bytes(), limit_bytes: SLOT_BYTES }.into());
        }
        let slot = match writers.get(key) {
            Some(slot) => *slot,
            None => {
                let used: std::collections::BTreeSet<u64> = writers.values().copied().collect();
                let free = (0..SLOT_COUNT).find(|slot| !used.contains(slot));
                free.ok_or(MediumError::Limit { wanted_bytes: SLOT_BYTES, limit_bytes: SLOT_COUNT * SLOT_BYTES })?
            }
        };
        self.slots.change(&self.medium, slot, Some((item, self.stamp())))?;
        writers.insert(key.to_vec(), slot);
        self.contents.write().insert(key.to_vec(), (value.into_owned(), expiry));
        Ok(true)
    }
}
