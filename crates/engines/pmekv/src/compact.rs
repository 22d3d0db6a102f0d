//! Moving records (`engine::Compacts`): a part is a leaf of the tree. A log entry ends the old record and begins the
//! copy, as for any put, if the key still has the record that was seen.
//!
//! Nodes of the last checkpoint and segments of the log are not moved. A checkpoint is made before the space is
//! examined if it saves an eighth of the nodes, or if the log has more entries than there are keys.

use engine::canary;
use engine::{Compaction, Compacts, Error, Moved, Pass, WriteResult};
use heap::{Heap, PlaceKind};
use index::Position;
use index::bplus_tree::Page;
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::prepared::Prepared;
use crate::record::check_intact;
use crate::write::Expected;

/// The first key of a leaf.
type Start = Vec<u8>;

impl<M: Medium, D: Dram> Compacts for Pmekv<M, D> {
    type Medium = M;
    type Dram = D;
    type Cursor = Start;

    fn medium(&self) -> &M {
        &self.medium
    }

    fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    fn compaction(&self) -> &Compaction<Start> {
        &self.compaction
    }

    fn move_part(&self, pass: &mut Pass<Start>, start: Start) -> Result<Option<Start>, Error> {
        let (mut page, mut found) = (Page::default(), Vec::new());
        {
            let _pin = epoch::pin();
            self.tree.read_leaf(&start, &mut page);
            for &record in page.positions() {
                if record.place().is_some_and(|place| self.heap.table().is_evacuating(place)) {
                    found.push((record, self.records().read(record).map(|item| item.key.to_vec())));
                }
            }
        }
        for (record, key) in found {
            let moved = self.move_record(pass, record, key)?;
            pass.note(self, moved);
        }
        Ok(page.end().map(<[u8]>::to_vec))
    }

    fn shrink(&self) -> Result<(), Error> {
        // A checkpoint reads all keys: if they are fewer than the log's entries, it costs less than those entries did.
        let is_worth_it = self.reserve.shrinks() || self.lanes.entry_count() > self.tree.len();
        if !self.medium.is_writable() || !is_worth_it || self.is_vain() {
            return Ok(());
        }
        self.go_on_without(self.checkpoint())
    }

    fn settle(&self) -> Result<bool, Error> {
        self.tree.collect();
        self.collect();
        Ok(!self.limbo.is_empty())
    }

    fn prepare_to_compact(&self) -> Result<(), Error> {
        self.may_write()
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    fn move_record(&self, pass: &mut Pass<Start>, old: Position, key: Result<Vec<u8>, Error>) -> Result<Moved, Error> {
        match key.and_then(|key| self.try_move(pass, old, &key)) {
            Err(Error::Corrupt { .. }) => Ok(Moved::Damaged { offset: old.offset().0 }),
            Err(error) if error.is_full() => Ok(Moved::NoSpace),
            moved => moved,
        }
    }

    fn try_move(&self, pass: &mut Pass<Start>, old: Position, key: &[u8]) -> Result<Moved, Error> {
        self.bound_log()?;
        let _pin = epoch::pin();
        let Some((position, item)) = self.find(key)?.filter(|(position, _)| *position == old) else {
            return Ok(Moved::Unexpected);
        };
        check_intact(position, &item)?;
        let Some(PlaceKind::Slot(class)) = position.place().map(|place| place.kind) else {
            return Ok(Moved::Unexpected);
        };
        let Some(reservation) = pass.slot(self, class)? else { return Ok(Moved::NoSpace) };
        // SAFETY: the slot was just reserved, and the record, which is read under the pin, is elsewhere.
        unsafe { items::copy(&self.medium, reservation.place().offset, position.offset(), &item) }?;
        let mut new = Some(Prepared::of_written(reservation, item.header.checksum, !item.expiry.is_never()));
        if self.medium.breaks(canary::MOVE_FREES_EARLY) {
            self.free(position);
        }
        let expected = match self.medium.breaks(canary::MOVE_UNCHECKED) {
            false => Expected::Record(Some(position)),
            true => Expected::Anything,
        };
        // An expired item stays expired: the reaper reports it, not its move.
        Ok(match self.change(key, &mut new, expected)?.answer {
            WriteResult::Done(_) => Moved::Done { item_bytes: item.header.item_bytes() },
            _ => Moved::Unexpected,
        })
    }
}
