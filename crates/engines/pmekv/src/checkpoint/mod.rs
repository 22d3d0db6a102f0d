//! Checkpoints: every key's record, packed into nodes, and for each lane the sequence up to which its log is in the
//! nodes.
//!
//! # Steps, under the checkpoint's lock
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 lock all lanes; note each lane's last sequence, its *cut*; unlock | the previous checkpoint, and the whole log |
//! | 2 read the tree in key order; write nodes; flush | the same, and slots that nothing names |
//! | 3 write the record with the cuts, next to the previous one; flush; order | the same |
//! | 4 store the new number in the root; commit | the previous checkpoint, or the new one |
//! | 5 free the previous nodes, and segments up to the cuts | the new one |
//!
//! # Concurrent changes of the tree
//! The nodes decide about a place only if the log has no entry about it after the cut. Such a place did not change
//! since step 1, so step 2 finds the record there exactly if the record was there at step 1: a read of the whole tree
//! meets every key that is present during all of the read. For places that did change, the log's entries decide,
//! whatever step 2 has seen of those places. Everything that step 2 sees is committed, because the tree has only
//! committed changes. On a log, everything that step 2 sees is in the log before the nodes are.
//!
//! Step 1 locks all lanes together, so that no batch is split by the cuts.
//!
//! # Keys of damaged records
//! Step 2 reads a key from its record. If the key is damaged there, it would become another key, and the real key would
//! be absent. So a damaged record keeps the key that the previous nodes have for it.

mod nodes;
mod space;

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Damage, Error, Figure};
use heap::HeapError;
use parking_lot::{Mutex, MutexGuard};
use pmem::{Dram, Level, Medium, Offset};

use crate::canary;
use crate::lanes::Lanes;
use crate::layout::{ROOT, node_place};
use crate::reader::Reader;
use crate::recover::read_checkpoint;
use crate::root::{Checkpoint, name};
use nodes::NodeWriter;

/// Figures of the current checkpoint, readable without waiting for the running one.
#[derive(Default)]
struct LastCheckpoint {
    number: AtomicU64,
    node_count: AtomicU64,
    /// Records that could not be read when a checkpoint was tried afterwards.
    damaged_count: AtomicU64,
}

impl LastCheckpoint {
    fn set(&self, counts: &Checkpoint) {
        self.number.store(counts.number, Ordering::Relaxed);
        self.node_count.store(counts.nodes.len() as u64, Ordering::Relaxed);
        self.damaged_count.store(0, Ordering::Relaxed);
    }
}

/// Makes the checkpoints of a store, and bounds its log.
pub(crate) struct Checkpointer<M: Medium, D: Dram> {
    reader: Reader<M, D>,
    lanes: Lanes,
    /// The checkpoint that the root names.
    current: Mutex<Checkpoint>,
    last: LastCheckpoint,
    log_entry_count_max: u64,
}

impl<M: Medium, D: Dram> Checkpointer<M, D> {
    pub(crate) fn new(
        reader: Reader<M, D>,
        lanes: Lanes,
        current: Checkpoint,
        log_entry_count_max: u64,
    ) -> Checkpointer<M, D> {
        let last = LastCheckpoint::default();
        last.set(&current);
        Checkpointer { reader, lanes, current: Mutex::new(current), last, log_entry_count_max }
    }

    pub(crate) fn with_reader(self, with: impl FnOnce(Reader<M, D>) -> Reader<M, D>) -> Checkpointer<M, D> {
        Checkpointer { reader: with(self.reader), ..self }
    }

    pub(crate) fn reader(&self) -> &Reader<M, D> {
        &self.reader
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Makes a checkpoint, and shortens the log.
    pub(crate) fn make(&self) -> Result<(), Error> {
        self.make_after(&mut self.current.lock())
    }

    /// Carries out the steps.
    fn make_after(&self, current: &mut Checkpoint) -> Result<(), Error> {
        let (reader, lanes, region) = (&self.reader, &self.lanes, self.reader.region());
        let medium = region.medium();
        region.may_write()?;
        if lanes.entry_count() == 0 {
            return Ok(());
        }
        if medium.breaks(canary::FREED_BEFORE_ROOT) {
            current.nodes.drain(..).for_each(|node| lanes.reserve().add(node));
        }
        lanes.reserve().fill(region)?;
        let (mut cuts, mut entry_count) = lanes.begin_checkpoint(reader)?;
        let (nodes, key_count) = self.write_nodes(current)?;
        if medium.breaks(canary::MARKS_AFTER_TREE) {
            (cuts, entry_count) = lanes.begin_checkpoint(reader)?;
        }
        let last = nodes.last().copied().unwrap_or_default();
        let new = Checkpoint { number: current.number + 1, last, key_count, cuts, nodes };
        name(medium, &region.heap().region().superblock().uuid, &new);
        medium.commit(Level::default());
        medium.health()?;
        self.replace(current, new);
        lanes.count_entries(0, entry_count);
        Ok(())
    }

    /// Step 2. Returns the nodes, and their number of keys.
    fn write_nodes(&self, current: &Checkpoint) -> Result<(Vec<Offset>, u64), Error> {
        let mut nodes = NodeWriter::new(&self.reader, &self.lanes, current.number + 1);
        let Err(error) = nodes.write_all(current) else { return Ok(nodes.into_nodes()) };
        self.lanes.reserve().give_up(nodes.nodes());
        if matches!(error, Error::Corrupt { .. }) {
            self.lanes.note_damage();
            self.last.damaged_count.store(self.reader.contents().count_damaged()?, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Locks the current checkpoint, which no other thread replaces.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Checkpoint> {
        self.current.lock()
    }

    /// Step 5, of the checkpoint `new`, which the root names: frees nodes and segments.
    pub(crate) fn replace(&self, current: &mut Checkpoint, new: Checkpoint) {
        let before = mem::replace(current, new);
        self.last.set(current);
        self.lanes.end_checkpoint(self.reader.region(), &before.nodes, &current.cuts, current.nodes.len() as u64);
    }

    /// Reads the nodes as an opening does.
    pub(crate) fn check(&self, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let region = self.reader.region();
        let current = self.current.lock();
        match read_checkpoint(region.medium(), region.heap()) {
            Ok(found) if found == *current => {}
            Ok(_) => {
                let what = "the root names another checkpoint than the one in memory".into();
                damaged(Damage { offset: ROOT.0, what });
            }
            Err(HeapError::Damaged { offset, what }) => damaged(Damage { offset, what: what.into() }),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Returns the bytes of the region that records, nodes, segments and spare slots occupy.
    pub(crate) fn needed_bytes(&self) -> Result<u64, Error> {
        let (heap, record_bytes) = (self.reader.region().heap(), self.reader.contents().record_bytes()?);
        let current = self.current.lock();
        let nodes = current.nodes.iter().map(|&at| heap.table().place_bytes(node_place(at)));
        Ok(record_bytes + nodes.sum::<u64>() + self.lanes.used_bytes(heap))
    }

    /// Returns the figures of checkpoints and log.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed) as f64;
        vec![
            Figure::gauge(
                "pmekv_log_entries",
                "Log entries since the last checkpoint",
                self.lanes.entry_count() as f64,
            ),
            Figure::gauge("pmekv_nodes", "Nodes of the last checkpoint", read(&self.last.node_count)),
            Figure::gauge("pmekv_checkpoints", "Checkpoints since the store was made", read(&self.last.number)),
            Figure::gauge(
                "pmekv_damaged_records",
                "Unreadable records that made the last checkpoint fail: the log is not shortened",
                read(&self.last.damaged_count),
            ),
        ]
    }
}
