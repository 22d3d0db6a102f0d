//! Moving records (`engine::Compacts`): a part is a leaf of the tree. A log entry ends the old record and begins the
//! copy, as for any put, if the key still has the record that was seen.
//!
//! Nodes of the last checkpoint and segments of the log are not moved. A checkpoint is made before the space is
//! examined if it saves an eighth of the nodes, or if the log has more entries than there are keys.

use engine::{Compaction, Compacts, Error, Moved, Pass};
use heap::Heap;
use index::bplus_tree::Page;
use pmem::{Dram, Medium};

use crate::Pmekv;

/// The first key of a leaf.
type Start = Vec<u8>;

impl<M: Medium, D: Dram> Compacts for Pmekv<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Start;

    fn medium(&self) -> &M {
        self.reader().region().medium()
    }

    fn heap(&self) -> &Heap<D> {
        self.reader().region().heap()
    }

    fn compaction(&self) -> &Compaction<Start> {
        &self.compaction
    }

    fn move_part(&self, pass: &mut Pass<Start>, start: Start) -> Result<Option<Start>, Error> {
        let (mut page, mut found) = (Page::default(), Vec::new());
        {
            let _pin = epoch::pin();
            self.reader().tree().read_leaf(&start, &mut page);
            for &record in page.positions() {
                if record.place().is_some_and(|place| self.reader().region().heap().table().is_evacuating(place)) {
                    found.push((record, self.reader().records().read(record).map(|item| item.key.to_vec())));
                }
            }
        }
        for (record, key) in found {
            let moved = key.and_then(|key| self.writer.move_record(&key, record, |class| pass.slot(self, class)));
            let moved = match moved {
                Err(Error::Corrupt { .. }) => Moved::Damaged { offset: record.offset().0 },
                Err(error) if error.is_full() => Moved::NoSpace,
                moved => moved?,
            };
            pass.note(self, moved);
        }
        Ok(page.end().map(<[u8]>::to_vec))
    }

    fn shrink(&self) -> Result<(), Error> {
        let (reader, checkpointer) = (self.reader(), self.writer.checkpointer());
        let lanes = checkpointer.lanes();
        // A checkpoint reads all keys: if they are fewer than the log's entries, it costs less than those entries did.
        let is_worth_it = lanes.reserve().shrinks() || lanes.entry_count() > reader.tree().len();
        let is_writable = reader.region().medium().is_writable();
        if !is_writable || !is_worth_it || checkpointer.would_repeat_damage() {
            return Ok(());
        }
        reader.region().continue_without_checkpoint(self.checkpoint())
    }

    fn settle(&self) -> Result<bool, Error> {
        self.reader().tree().collect();
        Ok(self.reader().region().collect())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        self.reader().region().may_write()
    }
}
