//! Checks of a store: the tree and the records, the places of checkpoint and log, and the bytes in use.

use engine::{Check, Damage, Depth, Error};
use index::Position;
use index::bplus_tree::Page;
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::layout::{node_place, segment_place};
use crate::record::{Records, check_intact, place_of};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Checks everything in one step. Writers may continue.
    pub(crate) fn check_all(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let is_deep = check.depth() == Depth::Deep;
        self.each_leaf(|from, leaf| {
            for record in self.records().in_time(leaf, Records::prefetch_whole) {
                match self.check_record(record, from, is_deep) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(Error::Corrupt { offset, what }) => damaged(Damage { offset, what: what.into() }),
                    Err(error) => return Err(error),
                }
                check.count_item();
            }
            Ok(())
        })?;
        self.check_checkpoint(damaged)?;
        check.set_state::<()>(None);
        Ok(())
    }

    /// Visits every key's record, leaf by leaf, with the first key of the leaf. Reads no record: it visits damaged ones
    /// as well, and may visit those of leaves that are being merged twice.
    pub(crate) fn each_leaf(&self, mut each: impl FnMut(&[u8], &[Position]) -> Result<(), Error>) -> Result<(), Error> {
        let (mut page, mut from) = (Page::default(), Vec::new());
        loop {
            let _pin = epoch::pin();
            self.tree.read_leaf(&from, &mut page);
            each(&from, page.positions())?;
            let Some(end) = page.end() else { return Ok(()) };
            end.clone_into(&mut from);
        }
    }

    /// Returns the number of records whose key cannot be read.
    pub(crate) fn count_damaged(&self) -> Result<u64, Error> {
        let (records, mut count) = (self.records(), 0);
        self.each_leaf(|_, leaf| {
            let leaf = records.in_time(leaf, Records::prefetch_whole);
            count += leaf.filter(|record| matches!(records.read(*record), Err(Error::Corrupt { .. }))).count() as u64;
            Ok(())
        })?;
        Ok(count)
    }

    /// Checks a record. Returns false if its key is below `from`: then the record was in a leaf that was merged with
    /// the previous one, and was visited before.
    fn check_record(&self, record: Position, from: &[u8], is_deep: bool) -> Result<bool, Error> {
        let place = place_of(record)?;
        if self.heap.table().check_place(place).is_err() || self.heap.table().is_free(place) {
            return Err(Error::Corrupt { offset: place.offset.0, what: "a key's record is at an impossible place" });
        }
        let item = self.records().read(record)?;
        let was_seen = item.key < from;
        // A low key may also be a damaged one.
        if is_deep || was_seen {
            check_intact(record, &item)?;
        }
        Ok(!was_seen)
    }

    /// Reads the nodes as an opening does.
    fn check_checkpoint(&self, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let checkpoint = self.checkpoint.lock();
        match crate::recover::read_checkpoint(&self.medium, &self.heap) {
            Ok(found) if found == *checkpoint => Ok(()),
            Ok(_) => {
                let what = "the root names another checkpoint than the one in memory".into();
                damaged(Damage { offset: crate::layout::ROOT.0, what });
                Ok(())
            }
            Err(heap::HeapError::Damaged { offset, what }) => {
                damaged(Damage { offset, what: what.into() });
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks the tree's structure and order. Locks all lanes while it does.
    pub(crate) fn check_tree(&self, damaged: &mut dyn FnMut(Damage)) {
        let lanes = self.lanes.lock_all();
        let _pin = epoch::pin();
        let of_lanes = lanes.iter().map(|log| log.keys.left + log.keys.gone).sum::<u64>();
        if self.reserve.promised() != self.tree.len() + of_lanes {
            damaged(Damage { offset: 0, what: "the reserve does not match the number of keys".into() });
        }
        self.tree.check(&self.records(), &mut |found| {
            let offset = found.position.map_or(0, |position| position.offset().0);
            damaged(Damage { offset, what: found.what.into() });
        });
    }

    /// Returns the bytes of the region that records, log and nodes occupy: all used bytes, once nothing is retired.
    ///
    /// # Errors
    /// Damage to a record.
    pub fn needed_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        self.each_stored(&mut |stored, _| {
            bytes += self.heap.table().place_bytes(place_of(stored.record)?);
            Ok(())
        })?;
        let checkpoint = self.checkpoint.lock();
        let nodes = checkpoint.nodes.iter().copied().chain(self.reserve.slots());
        bytes += nodes.map(|at| self.heap.table().place_bytes(node_place(at))).sum::<u64>();
        for log in self.lanes.lock_all() {
            let segments = log.segments.iter().map(|segment| segment_place(segment.at));
            bytes += segments
                .chain(log.ahead.iter().copied())
                .map(|place| self.heap.table().place_bytes(place))
                .sum::<u64>();
        }
        Ok(bytes)
    }
}
