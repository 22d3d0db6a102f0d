//! Creates and opens stores.

use engine::garbage::GARBAGE_BYTES_MAX;
use engine::{Clock, Compaction, Hasher, OpenError, Reaper, Verify, WriteThrottle};
use epoch::Limbo;
use heap::{EngineNumber, FEATURE_KEYS_IN_NODES, Heap, HeapError, Parameters};
use index::BPlusTree;
use parking_lot::Mutex;
use pmem::{Dram, Medium};

use crate::batch::Batches;
use crate::checkpoint::{Checkpoint, LastCheckpoint, name};
use crate::lane::{Lanes, Log, store_word};
use crate::layout::{LANE_COUNT_MAX, NODE_CLASS, OPENING, SEGMENT_ENTRY_COUNT, lane_word};
use crate::node::NodeForm;
use crate::recover::Lost;
use crate::reserve::{Counts, Reserve};
use crate::space::CheckpointDamage;
use crate::tickets::Tickets;
use crate::{Options, Pmekv, canary, recover};

/// A delete's entry and the entry that takes it back begin at most one segment: a lane has one ahead of need for them.
const SEGMENT_ENTRY_COUNT_MIN: u64 = 2;

impl<M: Medium, D: Dram + Clone> Pmekv<M, D> {
    /// Creates a store in an empty region. `parameters` has the number of lanes: the maximum number of concurrent
    /// writers.
    ///
    /// # Errors
    /// [`OpenError`] if there is not enough space, or a parameter is out of range.
    pub fn format(medium: M, dram: D, parameters: &Parameters, options: Options) -> Result<Pmekv<M, D>, OpenError> {
        let lane_count = parameters.partition_count as usize;
        if lane_count > LANE_COUNT_MAX {
            let value = parameters.partition_count.into();
            return Err(HeapError::Parameter { what: "the number of lanes", value }.into());
        }
        let heap = Heap::format(&medium, EngineNumber::PMEKV, parameters, dram.clone())?;
        (0..lane_count).for_each(|lane| store_word(&medium, lane_word(lane), 0));
        store_word(&medium, OPENING, 1);
        let checkpoint = Checkpoint::empty(1, [0; LANE_COUNT_MAX]);
        name(&medium, &parameters.uuid, &checkpoint);
        heap.region().set_features(&medium, FEATURE_KEYS_IN_NODES);
        heap.region().finish_format(&medium)?;
        let log = |number| Log { number, next: 1, ..Log::default() };
        let tree = BPlusTree::new(dram).map_err(|error| HeapError::NoDram { wanted_bytes: error.wanted_bytes })?;
        Ok(Pmekv::of(medium, heap, options, 1, (0..lane_count).map(log).collect(), tree, checkpoint))
    }

    /// Opens the store of a region, after a clean close or a crash. Builds the tree before it returns.
    ///
    /// # Errors
    /// [`OpenError`] with the damage or mismatch, and its offset.
    pub fn open(medium: M, dram: D, options: Options) -> Result<Pmekv<M, D>, OpenError> {
        Pmekv::open_with_progress(medium, dram, options, &|_, _| {})
    }

    /// Opens a store like [`Pmekv::open`], and calls `watch` now and then with the number of keys in the tree and the
    /// total.
    ///
    /// # Errors
    /// As for [`Pmekv::open`].
    pub fn open_with_progress(
        medium: M,
        dram: D,
        options: Options,
        watch: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Pmekv<M, D>, OpenError> {
        Pmekv::open_by(medium, dram, options, watch, None)
    }

    /// Opens a store like [`Pmekv::open_with_progress`], read-only. Skips damaged records, and all records of damaged
    /// nodes. [`Engine::walk_skipping_damage`](engine::Engine::walk_skipping_damage) reports them.
    ///
    /// # Errors
    /// As for [`Pmekv::open`]: other damage could bring back older records of intact keys.
    ///
    /// # Panics
    /// If the medium is writable.
    pub fn open_past_damage(
        medium: M,
        dram: D,
        options: Options,
        watch: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Pmekv<M, D>, OpenError> {
        assert!(!medium.is_writable(), "the medium is writable: skipped items would be lost");
        Pmekv::open_by(medium, dram, options, watch, Some(Lost::default()))
    }

    fn open_by(
        medium: M,
        dram: D,
        options: Options,
        watch: &(dyn Fn(u64, u64) + Sync),
        lost: Option<Lost>,
    ) -> Result<Pmekv<M, D>, OpenError> {
        let heap = Heap::open(&medium, EngineNumber::PMEKV, dram.clone())?;
        let found = recover::read(&medium, &heap)?;
        let hasher = Hasher::new(heap.region().superblock().hash_seed);
        let tree = recover::load(&medium, &heap, dram, &hasher, &found, (watch, lost.as_ref()))?;
        found.mark(&heap)?;
        // Catches checks that passed on the zeros that stand for unreadable ranges.
        medium.check_lost_ranges().map_err(HeapError::from)?;
        let (node_count, key_count) = (found.checkpoint.nodes.len() as u64, tree.len());
        let (form, mut spare) = (NodeForm::of(&heap), Vec::new());
        if medium.is_writable() {
            found.settle(&medium, &heap)?;
            let counts = Counts { nodes: node_count, segments: found.segment_count(), keys: key_count };
            heap.sweep()
                .keep_unreached(NODE_CLASS, Reserve::kept_count(&medium, &heap, &counts), |slot| spare.push(slot));
            heap.sweep().finish(&medium);
        }
        let opening = if medium.breaks(canary::OPENING_NOT_COUNTED) { 1 } else { found.opening() };
        let entry_count = found.entry_count();
        let (checkpoint, logs) = found.into_logs();
        let reserve = Reserve::new(form, spare, node_count, key_count);
        let lost = lost.map(Lost::into_damage).unwrap_or_default();
        let store = Pmekv { reserve, lost, ..Pmekv::of(medium, heap, options, opening, logs, tree, checkpoint) };
        store.lanes.count_entries(entry_count, 0);
        if store.medium.is_writable() {
            store.reserve_segments();
            // Fills the reserve of a store of an older version, which had none. Without space, new keys and checkpoints
            // wait for it.
            if !store.medium.breaks(canary::RESERVE_NOT_KEPT) && store.fill_reserve().is_err() {
                store.medium.health().map_err(HeapError::from)?;
            }
        }
        Ok(store)
    }

    fn of(
        medium: M,
        heap: Heap<D>,
        options: Options,
        opening: u64,
        logs: Vec<Log>,
        tree: BPlusTree<D>,
        checkpoint: Checkpoint,
    ) -> Pmekv<M, D> {
        let superblock = heap.region().superblock();
        let segment_entry_count = options.segment_entry_count.clamp(SEGMENT_ENTRY_COUNT_MIN, SEGMENT_ENTRY_COUNT);
        let last_checkpoint = LastCheckpoint::default();
        last_checkpoint.set(&checkpoint);
        let reserve = Reserve::new(NodeForm::of(&heap), Vec::new(), 0, 0);
        Pmekv {
            lanes: Lanes::new(logs, superblock.uuid, opening, segment_entry_count),
            hasher: Hasher::new(superblock.hash_seed),
            medium,
            heap,
            options,
            tree,
            tickets: Tickets::default(),
            batches: Batches::default(),
            limbo: Limbo::bounded(GARBAGE_BYTES_MAX),
            held_up: WriteThrottle::default(),
            checkpoint: Mutex::new(checkpoint),
            checkpoint_damage: CheckpointDamage::default(),
            last_checkpoint,
            clock: Clock::default(),
            verify: Verify::Nothing,
            reserve,
            reaper: Reaper::default(),
            compaction: Compaction::above(None),
            lost: Vec::new(),
        }
    }

    /// Reserves again the segment ahead of need of each lane that has a log, as long as there is space. Lanes with the
    /// least capacity left come first.
    fn reserve_segments(&self) {
        let mut logs = self.lanes.lock_all();
        logs.sort_by_key(|log| log.rest().count());
        for mut log in logs {
            let is_begun = !log.segments.is_empty();
            if is_begun && self.lanes.provide(&mut log, (&self.medium, &self.heap), 0, 1).is_err() {
                self.lanes.go_on(&mut log, &self.medium);
            }
        }
    }
}
