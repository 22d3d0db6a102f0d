//! Writes that go by what the key holds.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 pin; the key's item is read | nothing |
//! | 2 the decision, outside of any lock | nothing |
//! | 3 the new item, if there is one, is written and flushed | free space |
//! | 4 as a put or a delete, if the key's entry still names the item that was read; otherwise from 1 | the old item or the new one |
//!
//! The pin lasts from 1 to 4: the item's room is not reused meanwhile, and a position that is equal names the same item
//! (no ABA). Where the key's queue is full the pin is given up, and so is what was read.

use heap::Reservation;
use pmem::{Dram, Medium};

use super::HiKv;
use super::item;
use super::layout::HEADER_BYTES;
use super::order::Order;
use super::write::{Before, Outcome, Target};
use crate::{Decide, Decision, Error};

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    /// Changes the key as `decide` says of what it holds; true if it did. `decide` is asked again where others were faster.
    pub(super) fn update_by<'v>(&self, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        let signature = self.hasher.signature(key);
        loop {
            match self.with_room(|| self.try_update(signature, key, decide))? {
                Attempt::Done { changed } => return Ok(changed),
                Attempt::Overtaken => {}
                Attempt::QueueFull => O::make_room(self, self.index.partition(signature))?,
            }
        }
    }

    fn try_update<'v>(&self, signature: u64, key: &[u8], decide: &mut Decide<'_, 'v>) -> Result<Attempt, Error> {
        let _pin = epoch::pin();
        let found = self.find(signature, key)?;
        let target = Target::holding(signature, key, found.map(|(position, _)| position));
        let new = match decide(found.map(|(_, item)| item.value)) {
            Decision::Keep => return Ok(Attempt::Done { changed: false }),
            Decision::Delete => None,
            Decision::Put(value) => Some(self.prepare(key, &value)?),
        };
        let changed = found.is_some() || new.is_some();
        Ok(match self.publish(target, new)? {
            Outcome::Settled(Before::Unexpected) => Attempt::Overtaken,
            Outcome::Settled(_) => Attempt::Done { changed },
            Outcome::QueueFull(_) => Attempt::QueueFull,
        })
    }

    /// Step 3.
    fn prepare(&self, key: &[u8], value: &[u8]) -> Result<Reservation<'_, D>, Error> {
        self.check_put(key, value.len() as u64)?;
        let new = self.reserve((HEADER_BYTES + key.len() + value.len()) as u64)?;
        // SAFETY: the room was just reserved.
        unsafe { item::write(&self.medium, new.place().offset, key, value) };
        Ok(new)
    }
}

/// What came of an attempt.
enum Attempt {
    Done { changed: bool },
    Overtaken,
    QueueFull,
}
