//! What the engine offers: points, and walks by the number of a slot.

use engine::{
    Check, Clock, Cursor, Damage, Engine, EngineStats, Error, Features, Order, Progress, Show, Version, Wanted,
};
use heap::HeapError;
use items::{Expiry, NewItem};
use pmem::{Checksum, Dram, Level, Medium, MediumError, Ticket};

use crate::{Contents, SLOT_BYTES, SLOT_COUNT, Toy};

impl<M: Medium, D: Dram> Engine for Toy<M, D> {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn features(&self) -> Features {
        Features {
            order: Order::No,
            batch: false,
            snapshots: false,
            expiry: false,
            conditional: false,
            compaction: false,
            numbered_walk: true,
            salvage: false,
        }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.superblock().uuid
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        let (value, ticket) = {
            let contents = self.contents.read();
            (contents.by_key.get(key).map(|(_, value)| value.clone()), contents.ticket)
        };
        let _ = self.medium.acknowledge_met(ticket)?;
        let Some(value) = value else { return Ok(false) };
        let checksum = Checksum::default().update(&value).value();
        found(Version::new([checksum.into(), value.len() as u64]), &value);
        Ok(true)
    }

    fn get_part(&self, key: &[u8], found: &mut dyn FnMut(Version, &[u8])) -> Result<bool, Error> {
        self.get(key, found)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let item = NewItem { key, value, expiry: Expiry::NEVER };
        if item.item_bytes() > SLOT_BYTES {
            return Err(MediumError::Limit { wanted_bytes: item.item_bytes(), limit_bytes: SLOT_BYTES }.into());
        }
        self.change(key, Some(item)).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.change(key, None)
    }

    fn expiry(&self, key: &[u8]) -> Result<Option<Expiry>, Error> {
        Ok(self.get(key, &mut |_, _| {})?.then_some(Expiry::NEVER))
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn clear(&self) -> Result<(), Error> {
        let writers = self.write()?;
        self.heap.set_generation(&self.medium, self.heap.generation().wrapping_add(1));
        let ticket = self.medium.commit(Level::default());
        *self.contents.write() = Contents { ticket, ..Contents::default() };
        drop(writers);
        Ok(self.medium.wait(ticket)?)
    }

    fn len(&self) -> Result<u64, Error> {
        Ok(self.contents.read().by_key.len() as u64)
    }

    fn walk(&self, cursor: Cursor, each: &mut Show<'_>) -> Result<Cursor, Error> {
        let from = match cursor {
            Cursor::Start => 0,
            Cursor::Number(slot) => slot,
            Cursor::After(_) | Cursor::End => SLOT_COUNT,
        };
        let items = self
            .contents
            .read()
            .by_key
            .iter()
            .map(|(key, (slot, _))| (*slot, key.clone()))
            .min_by_key(|(slot, _)| if *slot < from { u64::MAX } else { *slot });
        let Some((slot, key)) = items.filter(|(slot, _)| *slot >= from) else { return Ok(Cursor::End) };
        self.get(&key, &mut |_, value| each(&key, value, Expiry::NEVER))?;
        Ok(Cursor::Number(slot + 1))
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let _writers = self.writers.lock();
        for slot in 0..SLOT_COUNT {
            match self.slots.item(&self.medium, slot, self.stamp()) {
                Ok(item) => item.into_iter().for_each(|_| check.count_item()),
                Err(HeapError::Damaged { offset, what }) => damaged(Damage { offset, what: what.into() }),
                Err(error) => return Err(error.into()),
            }
        }
        check.go_on_with::<()>(None);
        Ok(())
    }

    fn step(&self) -> Result<Progress, Error> {
        Ok(Progress::Idle)
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
            items: self.contents.read().by_key.len() as u64,
            region_bytes: space.region_bytes,
            used_bytes: space.mark_bytes,
            live_bytes: space.live_bytes,
            free_bytes: space.free_bytes,
            dram_bytes: space.dram_bytes,
            swept: true,
            counts: self.medium.counts(),
            ..EngineStats::default()
        }
    }
}

impl<M: Medium, D: Dram> Toy<M, D> {
    /// The writers' lock, if anything may be written.
    fn write(&self) -> Result<parking_lot::MutexGuard<'_, ()>, Error> {
        self.medium.health()?;
        if self.medium.is_writable() { Ok(self.writers.lock()) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Puts the item, or deletes the key; false if there was nothing to delete.
    fn change(&self, key: &[u8], new: Option<NewItem<'_>>) -> Result<bool, Error> {
        let writers = self.write()?;
        let old = self.contents.read().by_key.get(key).map(|(slot, _)| *slot);
        let slot = match (old, new) {
            (Some(slot), _) => slot,
            (None, Some(_)) => self.free_slot()?,
            (None, None) => {
                // Another writer deleted it, perhaps, and still waits.
                let ticket = self.contents.read().ticket;
                drop(writers);
                return Ok(self.medium.acknowledge_met(ticket).map(|_| false)?);
            }
        };
        let ticket = self.slots.change(&self.medium, slot, new.map(|item| (item, self.stamp())))?;
        self.tell(key, new.map(|item| (slot, item.value.to_vec())), ticket);
        drop(writers);
        self.medium.wait(ticket)?;
        Ok(true)
    }

    /// Step 5.
    fn tell(&self, key: &[u8], new: Option<(u64, Vec<u8>)>, ticket: Ticket) {
        let mut contents = self.contents.write();
        contents.ticket = ticket;
        match new {
            Some(new) => contents.by_key.insert(key.to_vec(), new),
            None => contents.by_key.remove(key),
        };
    }

    fn free_slot(&self) -> Result<u64, MediumError> {
        let contents = self.contents.read();
        let is_free = |slot: &u64| contents.by_key.values().all(|(used, _)| used != slot);
        let full = MediumError::Limit { wanted_bytes: SLOT_BYTES, limit_bytes: SLOT_COUNT * SLOT_BYTES };
        (0..SLOT_COUNT).find(is_free).ok_or(full)
    }
}
