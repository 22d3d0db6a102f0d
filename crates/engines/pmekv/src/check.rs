//! Checks of a store: the tree and the records, the places of checkpoint and log, and the bytes in use.

use engine::{Check, Damage, Error};
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::layout::{node_place, segment_place};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Checks everything in one step. Writers may continue.
    pub(crate) fn check_all(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        self.reader.check_records(check, damaged)?;
        self.check_checkpoint(damaged)?;
        check.set_state::<()>(None);
        Ok(())
    }

    /// Reads the nodes as an opening does.
    fn check_checkpoint(&self, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let checkpoint = self.checkpoint.lock();
        match crate::recover::read_checkpoint(self.reader.region().medium(), self.reader.region().heap()) {
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
        if self.reserve.promised() != self.reader.tree().len() + of_lanes {
            damaged(Damage { offset: 0, what: "the reserve does not match the number of keys".into() });
        }
        self.reader.tree().check(&self.reader.records(), &mut |found| {
            let offset = found.position.map_or(0, |position| position.offset().0);
            damaged(Damage { offset, what: found.what.into() });
        });
    }

    /// Returns the bytes of the region that records, log and nodes occupy: all used bytes, once nothing is retired.
    ///
    /// # Errors
    /// Damage to a record.
    pub fn needed_bytes(&self) -> Result<u64, Error> {
        let mut bytes = self.reader.record_bytes()?;
        let checkpoint = self.checkpoint.lock();
        let nodes = checkpoint.nodes.iter().copied().chain(self.reserve.slots());
        bytes += nodes.map(|at| self.reader.region().heap().place_bytes(node_place(at))).sum::<u64>();
        for log in self.lanes.lock_all() {
            let segments = log.segments.iter().map(|segment| segment_place(segment.at));
            bytes += segments
                .chain(log.ahead.iter().copied())
                .map(|place| self.reader.region().heap().place_bytes(place))
                .sum::<u64>();
        }
        Ok(bytes)
    }
}
