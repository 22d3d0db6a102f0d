//! The engine's operations: get, put, delete, and walks by slot number.

use engine::prelude::*;
use engine::{Check, Clock, Cursor, Damage, EngineStats, Error, Features, Limits, OnFound, OnItem, Witness};
use items::layout::HEADER_BYTES;
use items::{Expiry, ItemError, NewItem};
use parking_lot::MutexGuard;
use pmem::{Checksum, Dram, Level, Medium, MediumError};

use crate::{Contents, SLOT_BYTES, SLOT_COUNT, Toy, stamp};

const KEY_BYTES_MAX: usize = 96;

impl<M: Medium, D: Dram> Identity for Toy<M, D> {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn features(&self) -> Features {
        Features { numbered_walk: true, ..Features::POINTS }
    }

    fn limits(&self) -> Limits {
        let value_bytes_max = SLOT_BYTES - (HEADER_BYTES + KEY_BYTES_MAX) as u64;
        Limits { key_bytes_max: KEY_BYTES_MAX, value_bytes_max, batch_bytes_max: 0 }
    }

    fn uuid(&self) -> [u8; 16] {
        self.heap.region().superblock().uuid
    }
}

impl<M: Medium, D: Dram> Reads for Toy<M, D> {
    fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        check_key(key)?;
        let (value, ticket) = {
            let contents = self.contents.read();
            let item = contents.items.iter().flatten().find(|(held, _)| held == key);
            (item.map(|(_, value)| value.clone()), contents.ticket)
        };
        let _ = self.medium.acknowledge_met(ticket)?;
        let Some(value) = value else { return Ok(false) };
        let checksum = Checksum::default().update(&value).value();
        found(Witness::of_item(value.len() as u64, checksum, Expiry::NEVER), Expiry::NEVER, &value);
        Ok(true)
    }
}

impl<M: Medium, D: Dram> Writes for Toy<M, D> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        check_key(key)?;
        let item = NewItem { key, value, expiry: Expiry::NEVER };
        if item.item_bytes() > SLOT_BYTES {
            return Err(MediumError::Limit { wanted_bytes: item.item_bytes(), limit_bytes: SLOT_BYTES }.into());
        }
        self.change(key, Some(item)).map(drop)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        check_key(key)?;
        self.change(key, None)
    }

    fn clear(&self) -> Result<(), Error> {
        let writers = self.write()?;
        self.heap.region().set_generation(&self.medium, self.heap.region().generation().wrapping_add(1));
        let mut contents = self.contents.write();
        contents.items.fill(None);
        contents.ticket = self.medium.commit(Level::default());
        let ticket = contents.ticket;
        drop((contents, writers));
        Ok(self.medium.wait(ticket)?)
    }
}

impl<M: Medium, D: Dram> Atomic for Toy<M, D> {}

impl<M: Medium, D: Dram> Expires for Toy<M, D> {
    fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl<M: Medium, D: Dram> Walks for Toy<M, D> {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.contents.read().items.iter().flatten().count() as u64)
    }

    fn walk(&self, cursor: Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let from = match cursor {
            Cursor::Start => 0,
            Cursor::Number(slot) => slot,
            Cursor::After(_) | Cursor::End => SLOT_COUNT,
        };
        let item = {
            let contents = self.contents.read();
            (from..SLOT_COUNT).find_map(|slot| Some((slot, contents.items[slot as usize].as_ref()?.0.clone())))
        };
        let Some((slot, key)) = item else { return Ok(Cursor::End) };
        self.get(&key, &mut |_, expiry, value| each(&key, value, expiry))?;
        Ok(Cursor::Number(slot + 1))
    }

    fn check(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let _writers = self.writers.lock();
        for slot in 0..SLOT_COUNT {
            match self.slots.item(&self.medium, slot, stamp(&self.heap)) {
                Ok(item) => item.into_iter().for_each(|_| check.count_item()),
                Err(ItemError::Damaged { offset, what }) => damaged(Damage { offset, what: what.into() }),
                Err(error) => return Err(error.into()),
            }
        }
        check.set_state::<()>(None);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Maintenance for Toy<M, D> {}

impl<M: Medium, D: Dram> Engine for Toy<M, D> {
    fn health(&self) -> Result<(), Error> {
        Ok(self.medium.health()?)
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.medium.sync()?)
    }

    fn stats(&self) -> EngineStats {
        let (items, counts) = (self.contents.read().items.iter().flatten().count() as u64, self.medium.counts());
        EngineStats { items, swept: true, counts, ..EngineStats::of_space(self.heap.stats()) }
    }
}

impl<M: Medium, D: Dram> Toy<M, D> {
    /// Locks the writers' lock, unless the store is read-only or unhealthy.
    fn write(&self) -> Result<MutexGuard<'_, ()>, Error> {
        self.medium.health()?;
        if self.medium.is_writable() { Ok(self.writers.lock()) } else { Err(MediumError::ReadOnly.into()) }
    }

    /// Puts the item, or deletes the key. Returns false if there was nothing to delete.
    fn change(&self, key: &[u8], new: Option<NewItem<'_>>) -> Result<bool, Error> {
        let writers = self.write()?;
        let (slot, met) = {
            let Contents { items, ticket } = &*self.contents.read();
            let held = items.iter().position(|item| item.as_ref().is_some_and(|(held, _)| held == key));
            (held.or_else(|| new.and_then(|_| items.iter().position(Option::is_none))), *ticket)
        };
        let Some(slot) = slot else {
            drop(writers);
            let full = MediumError::Limit { wanted_bytes: SLOT_BYTES, limit_bytes: SLOT_COUNT * SLOT_BYTES };
            // There is nothing to delete: another writer may have deleted the key and still wait for its commit.
            return if new.is_some() {
                Err(full.into())
            } else {
                Ok(self.medium.acknowledge_met(met).map(|_| false)?)
            };
        };
        let ticket = self.slots.change(&self.medium, slot as u64, new.map(|item| (item, stamp(&self.heap))))?;
        // Step 5.
        let mut contents = self.contents.write();
        contents.ticket = ticket;
        contents.items[slot] = new.map(|item| (item.key.to_vec(), item.value.to_vec()));
        drop((contents, writers));
        self.medium.wait(ticket)?;
        Ok(true)
    }
}

fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() <= KEY_BYTES_MAX { Ok(()) } else { Err(Error::KeyTooLong { len_bytes: key.len() }) }
}
