//! Moving items (`engine::Compacts`): a part is a segment of the table (`writer/moved.rs`). Items in slots of the table
//! are not moved.

use engine::{Compaction, Compacts, Error, Pass, may_write};
use heap::Heap;
use index::Position;
use index::segmented::Cursor;
use pmem::{Dram, Medium};

use crate::RewoHash;

impl<M: Medium, D: Dram> Compacts for RewoHash<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Cursor;

    fn medium(&self) -> &M {
        self.writer.medium()
    }

    fn heap(&self) -> &Heap<D> {
        self.writer.space().heap()
    }

    fn compaction(&self) -> &Compaction<Cursor> {
        &self.compaction
    }

    fn move_part(&self, pass: &mut Pass<Cursor>, cursor: Cursor) -> Result<Option<Cursor>, Error> {
        let _pin = epoch::pin();
        let (shown, next) = self.writer.table().visit(self.medium(), cursor)?;
        for (_, slot) in &shown.slots {
            let place = slot.position().and_then(Position::place);
            if place.is_some_and(|place| self.heap().table().is_evacuating(place)) {
                let moved = self.writer.move_item(slot, &mut |class| pass.slot(self, class))?;
                pass.note(self, moved);
            }
        }
        Ok((!next.is_done()).then_some(next))
    }

    fn settle(&self) -> Result<bool, Error> {
        self.writer.space().collect(self.medium());
        Ok(self.writer.space().has_garbage())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        may_write(self.medium())?;
        self.finish_sweep()?;
        match self.heap().is_swept() {
            true => Ok(()),
            false => {
                Err(Error::Corrupt { offset: 0, what: "the table names an invalid place: free space is not known" })
            }
        }
    }
}
