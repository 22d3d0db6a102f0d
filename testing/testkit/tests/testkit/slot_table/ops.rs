//! The table's operations.

use pmem::{Bytes, Level, Medium, Persist, Taken};
use pmem_sim::Sim;
use std::sync::atomic::Ordering;
use testkit::{Contents, Failure, Operations, Space, Subject};

use super::{CELL_BYTES, DELETED, FRESH, HEADER_BYTES, OFFSET, Slot, SlotTable, signature};

impl SlotTable {
    fn publish_words(&self, slot: Slot, signature: Option<u64>, position: u64) {
        let last = (slot.position, position);
        match signature {
            Some(signature) => {
                assert_eq!(self.sim.publish(&[(slot.signature, signature), last], position & OFFSET), Taken::Yes)
            }
            None => assert_eq!(self.sim.publish(&[last], position & OFFSET), Taken::Yes),
        }
    }

    /// Publishes `position` and returns once it is durable and its mark is cleared. `free` is the writer's lock.
    fn publish(&self, slot: Slot, signature: Option<u64>, position: u64, free: impl Drop) {
        let torn = self.sim.breaks(index::canary::TORN_PAIR) && signature.is_some();
        self.publish_words(slot, signature.filter(|_| !torn), position | FRESH);
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst);
        if under_way > 0 && self.sim.breaks(testkit::canary::SECOND_NOT_WAITED) {
            // The first write's commit is taken for this one's as well.
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            let _ = self.sim.compare_exchange(slot.position, position | FRESH, position);
            return;
        }
        let ticket = self.sim.commit(Level::Strongest);
        drop(free);
        self.sim.wait(ticket).expect("a simulated wait succeeds");
        if torn {
            self.set_word(slot.signature, signature.unwrap_or(0));
            self.sync();
        }
        let _ = self.sim.compare_exchange(slot.position, position | FRESH, position);
        self.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Operations for SlotTable {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let Some((_, position)) = self.find(key) else { return Ok(None) };
        self.item(position).map(|(_, value)| Some(value.to_vec())).map_err(Failure::Other)
    }

    /// Steps, with the state that a crash after each leaves: 1 item durable: the old value. 2 entry published: the old
    /// or the new value. 3 commit: the new value. 4 the old item's cell is free.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if HEADER_BYTES as usize + key.len() + value.len() > CELL_BYTES as usize {
            return Err(Failure::Other("the item is too long for a cell".into()));
        }
        let mut free = self.free.lock();
        let old = self.find(key);
        let early = self.sim.breaks(engine_hikv::canary::FREE_BEFORE_UNLINK);
        free.extend(old.filter(|_| early).map(|(_, position)| position));
        let cell = self.reserve(&mut free).map_err(|_| Failure::Full)?;
        let slot = old.map(|(slot, _)| slot).or_else(|| self.find_empty());
        let slot = slot.ok_or_else(|| Failure::Other("the table is full".into()))?;
        let new_signature = old.is_none().then(|| signature(key));
        if self.sim.breaks(engine_hikv::canary::ENTRY_BEFORE_ITEM) {
            self.publish_words(slot, new_signature, cell | FRESH);
            self.sync();
        }
        self.write_item(cell, key, value);
        self.publish(slot, new_signature, cell, free);
        self.free.lock().extend(old.filter(|_| !early).map(|(_, position)| position));
        Ok(())
    }

    /// Steps, with the state that a crash after each leaves: 1 entry marked: present or absent. 2 commit: absent. 3 the
    /// entry is empty (in memory; recovery repeats it), then the cell is free.
    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        let mut free = self.free.lock();
        let Some((slot, old)) = self.find(key) else { return Ok(false) };
        if self.sim.breaks(engine_hikv::canary::PLAIN_ZERO_DELETE) {
            self.sim.store(slot.position, 0, Ordering::Release);
            free.push(old);
            return Ok(true);
        }
        self.publish(slot, None, old | DELETED, free);
        self.sim.store(slot.position, 0, Ordering::Release);
        self.free.lock().push(old);
        Ok(true)
    }

    /// Steps, with the state that a crash after each leaves: 1 the other table is durably empty: nothing changed. 2
    /// root published: everything or nothing. 3 commit: empty.
    fn clear(&self) -> Result<(), Failure> {
        let other = self.settled(super::ROOT) & 1 ^ 1;
        if self.sim.breaks(index::canary::CLEAR_BEFORE_SEGMENTS) {
            self.publish_root(other);
        }
        self.zero(other);
        self.sim.order();
        self.publish_root(other);
        self.find_free();
        Ok(())
    }

    fn len(&self) -> Result<u64, Failure> {
        let mut count = 0;
        self.for_each(&mut |_, _| count += 1)?;
        Ok(count)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        for position in self.slots().map(|slot| self.settled(slot.position)) {
            if position & OFFSET != 0 && position & DELETED == 0 {
                let (key, value) = self.item(position).map_err(Failure::Other)?;
                each(key, value);
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let is_live = |slot: &Slot| self.word(slot.position) & (OFFSET | DELETED) & !DELETED != 0;
        let damage = |slot: Slot| match self.item(self.word(slot.position)) {
            Ok((key, _)) if self.word(slot.signature) == signature(key) => None,
            Ok(_) => Some(format!("the signature at {:#x} is wrong", slot.signature.0)),
            Err(damage) => Some(damage),
        };
        Ok(self.slots().filter(is_live).filter_map(damage).collect())
    }
}

impl Subject for SlotTable {
    type Medium = Sim;

    fn format(medium: Sim) -> Result<SlotTable, Failure> {
        Ok(SlotTable::make(medium))
    }

    fn open(medium: Sim) -> Result<SlotTable, Failure> {
        SlotTable::recover(medium)
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        let cell_count = (self.sim.len_bytes() - super::CELLS.0) / CELL_BYTES - self.free.lock().len() as u64;
        Some(Space { live_bytes: cell_count * CELL_BYTES, needed_bytes: contents.len() as u64 * CELL_BYTES })
    }
}
