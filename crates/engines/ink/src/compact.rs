//! Moving a value (`engine::Compacts`): a part is a leaf, and the value is put again if the key still has the value
//! that was read. Its new place is in any chunk that is not being emptied. Keys and nodes are not moved.
//!
//! Nodes and keys of deleted pairs are freed by background merges (`merging.rs`).

use std::ops::Bound;

use engine::{Compaction, Compacts, Error, Moved, Pass, PriorState, Verify, canary, may_write};
use heap::Heap;
use pbtree::{Direction, Page, Value};
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::from_tree;
use crate::writer::put;

/// The start of a leaf.
type Start = Vec<u8>;

/// The items of a leaf in chunks being emptied: keys, and the stamps of their values.
struct Evacuees<'h, D: Dram> {
    heap: &'h Heap<D>,
    found: Vec<(Vec<u8>, u64)>,
    end: Start,
}

impl<D: Dram> Page for Evacuees<'_, D> {
    fn item(&mut self, key: &[u8], value: &Value<'_>) {
        if self.heap.table().is_evacuating(value.place) {
            self.found.push((key.to_vec(), value.stamp));
        }
    }

    fn ends_at(&mut self, fence: &[u8]) {
        fence.clone_into(&mut self.end);
    }
}

impl<M: Medium, D: Dram> Compacts for Ink<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Start;

    fn medium(&self) -> &M {
        self.tree().medium()
    }

    fn heap(&self) -> &Heap<D> {
        self.tree().heap()
    }

    fn compaction(&self) -> &Compaction<Start> {
        &self.compaction
    }

    /// Moves the values of one leaf, as far as it is intact.
    fn move_part(&self, pass: &mut Pass<Start>, start: Start) -> Result<Option<Start>, Error> {
        let mut leaf = Evacuees { heap: self.tree().heap(), found: Vec::new(), end: Start::new() };
        match self.tree().scan(Bound::Included(&start), Direction::Forward, &mut leaf).map_err(from_tree) {
            Err(Error::Corrupt { offset, .. }) => pass.note(self, Moved::Damaged { offset }),
            scanned => _ = scanned?,
        }
        for (key, stamp) in leaf.found {
            let moved = self.move_value(&key, stamp)?;
            pass.note(self, moved);
        }
        Ok((!leaf.end.is_empty()).then_some(leaf.end))
    }

    /// Returns false: released places are free immediately.
    fn settle(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        may_write(self.medium())?;
        self.tree().sweep().map_err(from_tree)
    }
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Moves one value. Values that are overwritten in place are not moved.
    fn move_value(&self, key: &[u8], stamp: u64) -> Result<Moved, Error> {
        let found = match self.items().find_verified(key, Verify::Values) {
            Err(Error::Corrupt { offset, .. }) => return Ok(Moved::Damaged { offset }),
            found => found?.filter(|found| found.stamp == stamp && !self.tree().options().in_place),
        };
        let Some(found) = found else { return Ok(Moved::Unexpected) };
        if self.medium().breaks(canary::MOVE_FREES_EARLY) {
            self.heap().free(self.medium(), found.place);
        }
        let is_checked = !self.medium().breaks(canary::MOVE_UNCHECKED);
        let is_same = &mut |held: Option<&Value<'_>>| {
            held.is_some_and(|held| held.stamp == stamp || !is_checked).then_some(PriorState::Present)
        };
        match self.writer.write(key, put(&found.bytes, found.expiry), is_same) {
            Ok(Some(_)) => Ok(Moved::Done { item_bytes: found.bytes.len() as u64 }),
            Ok(None) => Ok(Moved::Unexpected),
            Err(Error::Corrupt { offset, .. }) => Ok(Moved::Damaged { offset }),
            Err(error) if error.is_full() => Ok(Moved::NoSpace),
            Err(error) => Err(error),
        }
    }
}
