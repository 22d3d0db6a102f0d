//! Creating and opening a tree.

use core::sync::atomic::Ordering;

use heap::{Class, EngineNumber, FEATURE_TAGGED_VALUES, Heap, HeapError, Parameters, PlaceKind};
use pmem::{Dram, DramBox, Medium, seal};
use undo_log::{Lanes, Recovered};

use super::Tree;
use crate::layout::{NODE_HEADER_BYTES, ROOT, STAMP_BLOCKS, node_class, order_of};
use crate::node::{Meta, Node};
use crate::nodes::Nodes;
use crate::options::Options;
use crate::read::Reader;
use crate::retire::Retire;
use crate::space::Space;
use crate::walk::Walks;
use crate::word;
use crate::writer::Writers;

impl<M: Medium, D: Dram + Clone, R: Retire<M, D>> Tree<M, D, R> {
    /// Creates a region with an empty tree. `parameters` hold the number of lanes.
    ///
    /// # Steps
    /// The heap's format, with the lanes and an empty root flushed before the superblock is. The heap's steps
    /// describe the state after a crash.
    ///
    /// # Errors
    /// [`HeapError::Parameter`] for an order that nodes cannot have, or too many lanes; and those of
    /// [`Heap::format`].
    pub fn format(
        medium: M,
        parameters: &Parameters,
        options: Options,
        dram: D,
        retire: R,
    ) -> Result<Tree<M, D, R>, HeapError> {
        let wrong = |what, value| HeapError::Parameter { what, value };
        let class = node_class(options.order).ok_or(wrong("the order of a tree", options.order as u64))?;
        let lane_count = parameters.partition_count as usize;
        if lane_count > undo_log::layout::LANE_COUNT_MAX {
            return Err(wrong("the number of lanes", lane_count as u64));
        }
        let heap = Heap::format(&medium, EngineNumber::INK, parameters, dram.clone())?;
        let lanes = Lanes::format(&medium, &heap, lane_count, dram.clone())?;
        let root = heap.reserve(&medium, class.bytes(), 0)?.publish();
        Node::new(&medium, root.offset, options.order).set_meta(Meta { level: 0, count: 0 });
        medium.flush(root.offset.span(NODE_HEADER_BYTES));
        medium.store(ROOT, word::pointer(root), Ordering::Release);
        medium.store(STAMP_BLOCKS, seal(0), Ordering::Release);
        medium.flush(ROOT.span(16));
        heap.region().set_features(&medium, FEATURE_TAGGED_VALUES);
        heap.region().finish_format(&medium)?;
        Tree::of(medium, (heap, lanes, Recovered::default()), class, options, dram, retire)
    }

    /// Opens a tree, and undoes unfinished changes after a crash. It serves immediately; [`Tree::sweep`] finds the
    /// free space.
    ///
    /// # Errors
    /// Those of [`Heap::open`] and [`Lanes::recover`]; [`HeapError::Damaged`].
    pub fn open(medium: M, options: Options, dram: D, retire: R) -> Result<Tree<M, D, R>, HeapError> {
        let heap = Heap::open(&medium, EngineNumber::INK, dram.clone())?;
        let lanes = Lanes::open(&medium, &heap, heap.region().superblock().partition_count as usize, dram.clone())?;
        let recovered = lanes.recover(&medium)?;
        let damaged = || HeapError::Damaged { offset: ROOT.0, what: "the word of the root is damaged" };
        let root = word::place(ROOT, medium.load(ROOT, Ordering::Acquire)).map_err(|_| damaged())?;
        heap.table().check_place(root).map_err(|_| damaged())?;
        let PlaceKind::Slot(class) = root.kind else { return Err(damaged()) };
        let order = order_of(class).ok_or_else(damaged)?;
        let options = Options { order, ..options };
        Tree::of(medium, (heap, lanes, recovered), class, options, dram, retire)
    }

    fn of(
        medium: M,
        (heap, lanes, recovered): (Heap<D>, DramBox<Lanes, D>, Recovered),
        class: Class,
        options: Options,
        dram: D,
        retire: R,
    ) -> Result<Tree<M, D, R>, HeapError> {
        let nodes = Nodes::new(medium, options.order, class, dram.clone())?;
        let has_tags = heap.region().has_features(FEATURE_TAGGED_VALUES);
        Ok(Tree {
            reader: Reader::new(nodes, has_tags, dram.clone())?,
            space: Space::new(heap, class, retire),
            writers: Writers::new(lanes, options.in_place, dram.clone())?,
            walks: Walks::new(dram),
            recovered,
        })
    }
}
