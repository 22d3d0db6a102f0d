//! An open tree.

use core::sync::atomic::{AtomicU64, Ordering};

use heap::{Class, EngineNumber, FEATURE_TAGGED_VALUES, Heap, HeapError, Parameters, Place, PlaceKind, Reservation};
use pmem::{Dram, DramBox, Medium, Offset, seal};
use undo_log::{Lanes, Recovered};

use crate::Error;
use crate::layout::{NODE_HEADER_BYTES, ROOT, STAMP_BLOCKS, node_bytes, node_class, order_of};
use crate::locks::{LockTable, NodeLock};
use crate::node::{Meta, Node};
use crate::retire::Retire;
use crate::stamps::Stamps;
use crate::unsettled::Unsettled;
use crate::value::Owner;
use crate::word;

/// Parameters of making a tree and writing to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of pairs of a node, for a new tree: 7, 15, 31, 63, 127 or 255.
    pub order: usize,
    /// True if a value of the same length, up to [`Options::IN_PLACE_BYTES_MAX`], overwrites the old one, as in the
    /// paper.
    pub in_place: bool,
}

impl Options {
    /// The longest value that overwrites another one.
    pub const IN_PLACE_BYTES_MAX: u64 = 1024;
}

impl Default for Options {
    fn default() -> Options {
        Options { order: crate::ORDER_DEFAULT, in_place: false }
    }
}

/// A persistent B+tree in a separate region. Threads read and write concurrently.
pub struct Tree<M: Medium, D: Dram, R: Retire<M, D>> {
    pub(crate) medium: M,
    pub(crate) heap: Heap<D>,
    pub(crate) lanes: DramBox<Lanes, D>,
    pub(crate) dram: D,
    pub(crate) locks: LockTable<D>,
    /// The root's parent: see `locks`.
    pub(crate) tree_lock: NodeLock,
    /// Shared by a walk over a level; exclusive for a merge.
    pub(crate) walks: NodeLock,
    /// The approximate number of keys deleted since the last attempt to merge.
    pub(crate) vacated: AtomicU64,
    /// The offset of the spare node, or 0.
    pub(crate) spare: AtomicU64,
    pub(crate) stamps: DramBox<Stamps, D>,
    pub(crate) unsettled: Unsettled<D>,
    pub(crate) retire: R,
    pub(crate) options: Options,
    pub(crate) class: Class,
    has_tags: bool,
    recovered: Recovered,
}

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
        Tree::of(medium, heap, lanes, class, options, dram, retire, Recovered::default())
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
        Tree::of(medium, heap, lanes, class, options, dram, retire, recovered)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields, from either way to a tree")]
    fn of(
        medium: M,
        heap: Heap<D>,
        lanes: DramBox<Lanes, D>,
        class: Class,
        options: Options,
        dram: D,
        retire: R,
        recovered: Recovered,
    ) -> Result<Tree<M, D, R>, HeapError> {
        let locks = LockTable::new(dram.clone(), node_bytes(options.order))?;
        let (tree_lock, walks) = (NodeLock::default(), NodeLock::default());
        let unsettled = Unsettled::new(&medium, dram.clone())?;
        let (stamps, [vacated, spare]) = (Stamps::new(dram.clone())?, [AtomicU64::new(0), AtomicU64::new(0)]);
        Ok(Tree {
            has_tags: heap.region().has_features(FEATURE_TAGGED_VALUES),
            medium,
            heap,
            lanes,
            dram,
            locks,
            tree_lock,
            walks,
            vacated,
            spare,
            stamps,
            unsettled,
            retire,
            options,
            class,
            recovered,
        })
    }
}

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Returns the tree's medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the region's allocator.
    pub fn heap(&self) -> &Heap<D> {
        &self.heap
    }

    /// Returns the bytes of DRAM that its locks and the records of its changes have allocated.
    pub fn dram_bytes(&self) -> u64 {
        self.locks.lent_bytes() + self.unsettled.lent_bytes()
    }

    /// Returns its options, including its order.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Returns the changes that opening has undone.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    pub(crate) fn node(&self, at: Offset) -> Node<'_, M> {
        Node::new(&self.medium, at, self.options.order)
    }

    pub(crate) fn order(&self) -> usize {
        self.options.order
    }

    /// Returns the owner of the values of a key with this checksum.
    #[inline(always)]
    pub(crate) fn owner(&self, checksum: u32) -> Owner {
        Owner::new(checksum, self.has_tags)
    }

    /// Reserves a new node.
    pub(crate) fn reserve_node(&self, agent: usize) -> Result<Reservation<'_, D>, Error> {
        Ok(self.heap.reserve(&self.medium, self.class.bytes(), agent)?)
    }

    /// Returns the root's place. The caller holds the tree lock.
    pub(crate) fn root(&self) -> Result<Place, Error> {
        word::place(ROOT, self.medium.load(ROOT, Ordering::Acquire))
    }

    /// Releases a place to which nothing refers any more, durably. The caller holds the lock of the node that
    /// referred to it.
    pub(crate) fn let_go(&self, place: Place) {
        self.heap.sweep().mark_unlinked(place);
        self.retire.retire(&self.medium, &self.heap, place);
    }
}
