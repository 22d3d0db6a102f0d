//! Creates and opens stores.

use std::collections::VecDeque;

use engine::{Compaction, Hasher, OpenError};
use heap::{EngineNumber, FEATURE_KEYS_IN_NODES, Heap, HeapError, Parameters};
use index::BPlusTree;
use pmem::{Dram, Medium};

use crate::checkpoint::Checkpointer;
use crate::contents::Contents;
use crate::lanes::{Lanes, store_word};
use crate::layout::{LANE_COUNT_MAX, NODE_CLASS, OPENING, lane_word};
use crate::node::NodeForm;
use crate::reader::Reader;
use crate::recover::Lost;
use crate::region::Region;
use crate::reserve::{Counts, Reserve};
use crate::root::{Checkpoint, name};
use crate::writer::Writer;
use crate::{Options, Pmekv, canary, recover};

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
        let logs = vec![(1, VecDeque::new()); lane_count];
        let reserve = Reserve::new(NodeForm::of(&heap), Vec::new(), 0, 0);
        let tree = BPlusTree::new(dram).map_err(|error| HeapError::NoDram { wanted_bytes: error.wanted_bytes })?;
        let lanes = Lanes::new(logs, (parameters.uuid, 1), options.segment_entry_count, 0, reserve);
        Ok(Pmekv::of(Reader::new(Contents::new(Region::new(medium, heap), tree)), lanes, checkpoint, options))
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
    /// nodes. [`Walks::walk_skipping_damage`](engine::Walks::walk_skipping_damage) reports them.
    ///
    /// # Errors
    /// As for [`Pmekv::open`]: other damage could bring back older records of intact keys.
    ///
    /// # Panics
    /// If the medium is writable.
    pub fn open_skipping_damage(
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
        let found = medium.held(|| recover::read(&medium, &heap))?;
        let hasher = Hasher::new(heap.region().superblock().hash_seed);
        let tree = medium.held(|| recover::load(&medium, &heap, dram, &hasher, &found, (watch, lost.as_ref())))?;
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
        let (uuid, entry_count) = (heap.region().superblock().uuid, found.entry_count());
        let (checkpoint, logs) = found.into_logs();
        let reserve = Reserve::new(form, spare, node_count, key_count);
        let lanes = Lanes::new(logs, (uuid, opening), options.segment_entry_count, entry_count, reserve);
        let reader = Reader::new(Contents::new(Region::new(medium, heap), tree));
        let region = reader.region();
        if region.medium().is_writable() {
            lanes.refill_ahead(region);
            // Fills the reserve of a store of an older version, which had none. Without space, new keys and checkpoints
            // wait for it.
            if !region.medium().breaks(canary::RESERVE_NOT_KEPT) && lanes.reserve().fill(region).is_err() {
                region.medium().health().map_err(HeapError::from)?;
            }
        }
        let lost = lost.map(Lost::into_damage).unwrap_or_default();
        Ok(Pmekv { lost, ..Pmekv::of(reader, lanes, checkpoint, options) })
    }

    fn of(reader: Reader<M, D>, lanes: Lanes, checkpoint: Checkpoint, options: Options) -> Pmekv<M, D> {
        let checkpointer = Checkpointer::new(reader, lanes, checkpoint, options.log_entry_count_max);
        Pmekv { writer: Writer::new(checkpointer), compaction: Compaction::above(None), lost: Vec::new() }
    }
}
