//! Verifying a store: every entry against its item, every item against its checksum, no key twice.

use index::Position;
use index::partitioned_hash::Cursor;
use pmem::{Dram, Medium, Offset};

use super::HiKv;
use super::item::Item;
use super::order::Order;
use super::read::whole;
use crate::{CheckStep, Damage, Error};

impl<M: Medium, D: Dram, O: Order<M, D>> HiKv<M, D, O> {
    /// Checks one segment. The first step also tells what the sweep found.
    pub(super) fn check_step(&self, cursor: Cursor, damaged: &mut dyn FnMut(Damage)) -> Result<CheckStep, Error> {
        if cursor == Cursor::default() {
            self.finish_sweep()?;
            self.sweep_damage().into_iter().for_each(&mut *damaged);
        }
        let _pin = epoch::pin();
        let mut item_count = 0;
        let mut wrong = Vec::new();
        let cursor = self.index.check_segment(
            &self.medium,
            cursor,
            &mut |damage| damaged(Damage { offset: damage.at.0, what: damage.what.into() }),
            &mut |signature, at, position, twins| {
                item_count += 1;
                wrong.extend(self.check_item(signature, at, position, twins).err());
            },
        );
        wrong.into_iter().for_each(damaged);
        Ok(CheckStep { cursor, item_count })
    }

    fn check_item(&self, signature: u64, at: Offset, position: Position, twins: &[Position]) -> Result<(), Damage> {
        let damage = |offset: Offset, what: String| Damage { offset: offset.0, what };
        let item = self.whole_item(position).map_err(|error| damage(position.offset(), error.to_string()))?;
        if self.hasher.signature(item.key) != signature {
            return Err(damage(at, "an entry's signature is not that of its key".into()));
        }
        if item.header.epoch > self.stamp() {
            return Err(damage(position.offset(), "an item is of a later snapshot epoch than the store".into()));
        }
        let same_key = |&twin: &Position| self.whole_item(twin).is_ok_and(|other| other.key == item.key);
        if twins.iter().any(same_key) {
            return Err(damage(at, "a key has two entries".into()));
        }
        Ok(())
    }

    fn whole_item(&self, position: Position) -> Result<Item<'_>, Error> {
        // SAFETY: the position comes from the index, and the caller is pinned.
        let item = unsafe { Item::read(&self.medium, position) }?;
        whole(&item, position)?;
        Ok(item)
    }
}
