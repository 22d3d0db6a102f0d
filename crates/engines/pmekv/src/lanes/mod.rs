//! Lanes: each has its own log, a chain of segments. All changes of a key are in one lane, whose log has their order.
//!
//! # A segment begins, under the lane's lock
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 reserve an extent, ahead of need | an extent that nothing names |
//! | 2 write its header, with the number of this opening; order | the same |
//! | 3 store it in the lane's word; flush | the lane with or without the segment |
//!
//! After step 3, no entry of the segment is acknowledged before the word is durable, because both are flushed before
//! one commit.
//!
//! Entries' checksums begin with the header. So old lines in an extent that was a segment before, or that a lane had
//! begun before its word was lost, are not valid entries. Sequences ascend by one and are not reused within an opening,
//! and each opening begins its own segments unless the region is full (`Log::go_on`). So no line of a segment is
//! written twice as an entry. Otherwise a torn entry could become valid through half of another entry that is written
//! over it, if both have some words in common.
//!
//! # Lock order
//! The checkpoint's lock, then lanes in ascending order, then all other locks. No thread waits for the medium under a
//! lane's lock.

mod log;
mod segment;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Damage, Error};
use heap::Heap;
use index::Position;
use parking_lot::{Mutex, MutexGuard};
use pmem::{Dram, Medium, Offset};

use crate::layout::{LANE_COUNT_MAX, SEGMENT_ENTRY_COUNT, node_place, segment_place};
use crate::reader::Reader;
use crate::region::Region;
use crate::reserve::Reserve;
use crate::{broken, canary};
use log::Form;

pub(crate) use log::Log;
pub(crate) use segment::{Segment, store_word, write_line};

/// A delete's entry and the entry that takes it back begin at most one segment: a lane has one ahead of need for them.
const SEGMENT_ENTRY_COUNT_MIN: u64 = 2;

/// All lanes of a store, and the reserve that promises their keys.
pub(crate) struct Lanes {
    all: Vec<Mutex<Log>>,
    opening: u64,
    /// Entries since the last checkpoint, approximately.
    entry_count: AtomicU64,
    reserve: Reserve,
    /// The number of entries when the last checkpoint met damage, if it did.
    damaged_at: Mutex<Option<u64>>,
}

impl Lanes {
    /// Creates the lanes, whose logs have these next sequences and segments.
    pub(crate) fn new(
        logs: Vec<(u64, VecDeque<Segment>)>,
        (uuid, opening): ([u8; 16], u64),
        segment_entry_count: u64,
        entry_count: u64,
        reserve: Reserve,
    ) -> Lanes {
        let segment_entry_count = segment_entry_count.clamp(SEGMENT_ENTRY_COUNT_MIN, SEGMENT_ENTRY_COUNT);
        let form = Form { uuid, opening, entry_count: segment_entry_count };
        let all = logs.into_iter().enumerate().map(|(number, log)| Mutex::new(Log::new(number, form, log))).collect();
        let (entry_count, damaged_at) = (AtomicU64::new(entry_count), Mutex::new(None));
        Lanes { all, opening, entry_count, reserve, damaged_at }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the lane of keys of this hash.
    #[inline(always)]
    pub(crate) fn of(&self, hash: u64) -> usize {
        lane_of(hash, self.all.len())
    }

    /// Returns the lane that a write to a key of this hash uses.
    #[inline(always)]
    pub(crate) fn of_write<M: Medium>(&self, medium: &M, hash: u64) -> usize {
        let turn = if medium.breaks(canary::KEY_IN_ANY_LANE) { self.entry_count() << 32 } else { 0 };
        self.of(hash.wrapping_add(turn))
    }

    pub(crate) fn lock(&self, lane: usize) -> MutexGuard<'_, Log> {
        self.all[lane].lock()
    }

    /// Locks all lanes, which excludes all writers.
    pub(crate) fn lock_all(&self) -> Vec<MutexGuard<'_, Log>> {
        self.all.iter().map(Mutex::lock).collect()
    }

    /// Returns the number of this opening.
    pub(crate) fn opening(&self) -> u64 {
        self.opening
    }

    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Returns the number of entries since the last checkpoint.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count.load(Ordering::Relaxed)
    }

    /// Adds `more` new entries to the count, and subtracts `fewer` that are in the nodes now.
    pub(crate) fn count_entries(&self, more: u64, fewer: u64) {
        self.entry_count.fetch_add(more.wrapping_sub(fewer), Ordering::Relaxed);
    }

    /// Notes that a checkpoint met a damaged record.
    pub(crate) fn note_damage(&self) {
        *self.damaged_at.lock() = Some(self.entry_count());
    }

    /// Returns the number of entries since the last checkpoint met damage, if it did.
    pub(crate) fn grown_since_damage(&self) -> Option<u64> {
        self.damaged_at.lock().map(|before| self.entry_count().saturating_sub(before))
    }

    /// Prepares writing entries, under the lane's lock: ensures that the log has space for `entries` entries and
    /// `spare` further segments, and that `added` keys may be added.
    #[inline(always)]
    pub(crate) fn provide<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        region: &Region<M, D>,
        entries: u64,
        spare: usize,
        added: u64,
    ) -> Result<(), Error> {
        if added > log.keys().left() {
            self.reserve.promise(region, log.keys(), added)?;
        }
        let provided = log.provide(region, entries, spare);
        if provided.is_ok() { provided } else { self.provide_without_spare(log, region, entries, provided) }
    }

    /// In a full region, a lane does without a segment ahead of need if it has one that a checkpoint will free.
    #[cold]
    #[inline(never)]
    fn provide_without_spare<M: Medium, D: Dram>(
        &self,
        log: &mut Log,
        region: &Region<M, D>,
        entries: u64,
        provided: Result<(), Error>,
    ) -> Result<(), Error> {
        let is_full = provided.as_ref().is_err_and(Error::is_full);
        let is_long = log.is_long_after(entries);
        if !is_full || !is_long || self.reserve.lacks_slots() || self.damaged_at.lock().is_some() {
            return provided;
        }
        log.provide(region, entries, 0)
    }

    /// Returns a log that has provided for entries that will not be written to its former state, with `ahead_count`
    /// extents ahead of need.
    pub(crate) fn undo_provide<M: Medium, D: Dram>(&self, log: &mut Log, region: &Region<M, D>, ahead_count: usize) {
        log.keep_ahead(ahead_count).into_iter().for_each(|place| region.free(Position::of(place)));
        self.reserve.take_back(log.keys());
    }

    /// Reserves again the segment ahead of need of each lane that has a log, as long as there is space. Lanes with the
    /// least capacity left come first.
    pub(crate) fn refill_ahead<M: Medium, D: Dram>(&self, region: &Region<M, D>) {
        let mut logs = self.lock_all();
        logs.sort_by_key(|log| log.rest().count());
        logs.iter_mut().for_each(|log| log.refill_ahead(region));
    }

    /// Locks all lanes, and begins a checkpoint unless the tree lacks changes of a batch. Returns the cuts, and the
    /// number of entries in the log.
    pub(crate) fn begin_checkpoint<M: Medium, D: Dram>(
        &self,
        reader: &Reader<M, D>,
    ) -> Result<([u64; LANE_COUNT_MAX], u64), Error> {
        let medium = reader.region().medium();
        if medium.breaks(canary::BATCH_CUT_APART) {
            return Ok(broken::cuts_apart(self, medium));
        }
        let logs = self.lock_all();
        reader.check_batches_applied()?;
        self.reserve.begin(medium.breaks(canary::GONE_WHILE_READ));
        Ok((cuts_of(&logs), self.entry_count()))
    }

    /// Frees the nodes of the checkpoint before, and segments up to the cuts of the new one.
    pub(crate) fn end_checkpoint<M: Medium, D: Dram>(
        &self,
        region: &Region<M, D>,
        nodes_before: &[Offset],
        cuts: &[u64; LANE_COUNT_MAX],
        node_count: u64,
    ) {
        self.reserve.end(nodes_before, node_count);
        *self.damaged_at.lock() = None;
        for (lane, &cut) in self.all.iter().zip(cuts) {
            let mut log = lane.lock();
            let gone = log.cut(cut);
            self.reserve.take_back(log.keys());
            drop(log);
            gone.into_iter().for_each(|at| region.heap().free(region.medium(), segment_place(at)));
        }
        self.reserve.trim(region);
    }

    /// Takes back the unused promises of lanes. Returns true if a checkpoint would free segments or nodes. The caller
    /// holds the checkpoint's lock.
    pub(crate) fn gather(&self) -> bool {
        let mut is_long = false;
        for lane in &self.all {
            let mut log = lane.lock();
            self.reserve.take_back(log.keys());
            is_long |= log.is_long_after(0);
        }
        is_long || self.reserve.shrinks()
    }

    /// Checks the tree's structure and order, and the reserve's promises. Locks all lanes while it does.
    pub(crate) fn check_tree<M: Medium, D: Dram>(&self, reader: &Reader<M, D>, damaged: &mut dyn FnMut(Damage)) {
        let mut logs = self.lock_all();
        let _pin = epoch::pin();
        let absent_count = logs.iter_mut().map(|log| log.keys().promised()).sum::<u64>();
        if self.reserve.promised() != reader.tree().len() + absent_count {
            damaged(Damage { offset: 0, what: "the reserve does not match the number of keys".into() });
        }
        reader.tree().check(&reader.records(), &mut |found| {
            let offset = found.position.map_or(0, |position| position.offset().0);
            damaged(Damage { offset, what: found.what.into() });
        });
    }

    /// Returns the bytes of the region that segments and spare slots occupy.
    pub(crate) fn used_bytes<D: Dram>(&self, heap: &Heap<D>) -> u64 {
        let logs = self.lock_all();
        let slots = self.reserve.slots().into_iter().map(node_place);
        logs.iter().flat_map(|log| log.places()).chain(slots).map(|place| heap.table().place_bytes(place)).sum()
    }
}

/// Returns the lane of keys of this hash, of `lane_count` lanes.
#[inline(always)]
pub(crate) fn lane_of(hash: u64, lane_count: usize) -> usize {
    // Lanes are few: a 32-bit division is enough.
    ((hash >> 32) as u32 % lane_count as u32) as usize
}

/// Returns the last sequence of each lane.
pub(crate) fn cuts_of(logs: &[MutexGuard<'_, Log>]) -> [u64; LANE_COUNT_MAX] {
    let mut cuts = [0; LANE_COUNT_MAX];
    logs.iter().for_each(|log| cuts[log.number()] = log.last());
    cuts
}

#[cfg(test)]
mod tests {
    use heap::{EngineNumber, Parameters};
    use index::BPlusTree;
    use pmem_os::HostDram;
    use pmem_sim::{Model, Sim};

    use super::*;
    use crate::contents::Contents;
    use crate::node::NodeForm;

    /// Otherwise keys that lanes have deleted would stay promised, and the reserve would keep its surplus.
    #[test]
    fn refused_checkpoint_does_not_begin() {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: 1 << 20 };
        let sim = Sim::new(0, Model::Line);
        let heap = Heap::format(&sim, EngineNumber::PMEKV, &parameters, HostDram).unwrap();
        let reserve = Reserve::new(NodeForm::of(&heap), Vec::new(), 0, 0);
        let lanes = Lanes::new(vec![(1, VecDeque::new())], (parameters.uuid, 1), SEGMENT_ENTRY_COUNT, 0, reserve);
        let reader = Reader::new(Contents::new(Region::new(sim, heap), BPlusTree::new(HostDram).unwrap()));
        let mut log = lanes.lock(0);
        lanes.provide(&mut log, reader.region(), 0, 0, 1).unwrap();
        // A key is added and deleted.
        log.keys().note(true, false);
        log.keys().note(false, true);
        drop(log);
        reader.keep_published();
        assert!(lanes.begin_checkpoint(&reader).is_err());
        lanes.gather();
        assert_eq!(lanes.reserve().promised(), 0);
    }
}
