//! The reserve: slots for the nodes of future checkpoints. In a full region, only a checkpoint frees space in the log
//! (`checkpoint/space.rs`), so a checkpoint must not need new space.
//!
//! # Invariant
//! The *promised* keys are the present keys and the keys that lanes may still add without asking the reserve. They fill
//! `c` nodes. The reserve has `s` slots in total: `n` hold the nodes of the current checkpoint, and the others are
//! spare. There are at least `c` spare slots (`s - n >= c`), and as many for the checkpoint after the next (`s >= 2c`):
//! - A checkpoint meets only promised keys, so it has at most `c` nodes, and finds a spare slot for each.
//! - After it `n <= c`, so `s - n >= c` still holds.
//! - A lane asks before it adds a key that was not promised. If the reserve cannot get slots for it, the region is
//!   full.
//!
//! A checkpoint that reads the tree may meet a key before its deletion, and then another key that was added instead. So
//! deleted keys stay promised until the checkpoint has ended.
//!
//! # Surplus
//! After deletes, the reserve has more slots than necessary. A freed chunk of slots may be used for anything. To get a
//! chunk back later, one must be empty, which may take very long in a region full of records. So in a region that was
//! used to its end (`Chunks::is_exhausted`), the reserve keeps all slots until the region grows, or until a write finds
//! no space otherwise (`checkpoint/space.rs`). Exception: after a checkpoint of no keys, such as that of a clear, the
//! reserve keeps no surplus, because all chunks become free. Perhaps no later write asks for it.
//!
//! The reserve is not stored. An opening keeps free slots before the sweep releases any (`open.rs`); the slots of the
//! previous reserve are among them. In an exhausted region, an opening keeps as many slots as the reserve would
//! need if keys of the same average size filled the free space: the other free slots of that size class held records. A
//! store of a version without a reserve may lack slots until there is space: then no keys are added, and a checkpoint
//! fails before it reads any key.

use engine::Error;
use heap::{Heap, HeapStats};
use parking_lot::Mutex;
use pmem::{Dram, Medium, Offset};

use crate::canary;
use crate::layout::{NODE_BYTES, UNIT_BYTES, node_place};
use crate::node::NodeForm;
use crate::region::Region;

/// Keys that a lane is promised at a time, if possible: few enough that the unused promises of 64 lanes cost some tens
/// of nodes.
const KEYS_AT_ONCE: u64 = 128;

/// The minimum number of slots that a write gets at a time when it finds no space: about one chunk.
const SLOTS_AT_ONCE: u64 = 64;

/// A checkpoint that only frees space must save more than one node of this many.
const SHARE_WORTH: u64 = 8;

/// Keys that a lane may add, and keys that it has deleted, under its lock.
#[derive(Default)]
pub(crate) struct Keys {
    /// Keys that may be added without asking the reserve.
    left: u64,
    /// Keys that were deleted and are still promised.
    gone: u64,
}

impl Keys {
    #[inline(always)]
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the number of keys that are promised and absent.
    pub(crate) fn promised(&self) -> u64 {
        self.left + self.gone
    }

    /// Notes an entry that begins a record, ends one, or both.
    #[inline(always)]
    pub(crate) fn note(&mut self, begins: bool, ends: bool) {
        self.left -= u64::from(begins & !ends);
        self.gone += u64::from(ends & !begins);
    }

    /// Uses the promise of a deleted key for that key, which comes back.
    pub(crate) fn reuse_promise(&mut self) {
        (self.left, self.gone) = (self.left + 1, self.gone - 1);
    }
}

/// The reserve; see the head of this module.
pub(crate) struct Reserve(Mutex<State>);

struct State {
    /// The form of keys in the nodes.
    form: NodeForm,
    spare: Vec<Offset>,
    /// Slots that the running checkpoint has taken.
    taken_count: u64,
    /// Nodes of the current checkpoint.
    named_count: u64,
    promised: u64,
    /// True while a checkpoint reads the tree.
    is_read: bool,
}

impl NodeForm {
    /// Returns the number of nodes that `key_count` keys fill.
    fn node_count(self, key_count: u64) -> u64 {
        key_count.div_ceil(self.key_count_max() as u64)
    }
}

impl State {
    fn slot_count(&self) -> u64 {
        self.spare.len() as u64 + self.taken_count + self.named_count
    }

    /// Returns the number of nodes that `slot_count` slots suffice for.
    fn node_count_max(&self, slot_count: u64) -> u64 {
        slot_count.saturating_sub(self.named_count).min(slot_count / 2)
    }

    /// Returns the number of slots that the reserve does not need.
    fn surplus_count(&self) -> u64 {
        let needed_count = self.form.node_count(self.promised);
        self.slot_count().saturating_sub(needed_count + needed_count.max(self.named_count))
    }

    /// Returns the number of keys that can be promised in addition.
    fn free(&self) -> u64 {
        let key_count_max = self.node_count_max(self.slot_count()) * self.form.key_count_max() as u64;
        key_count_max.saturating_sub(self.promised)
    }

    fn take_back_gone(&mut self, keys: &mut Keys) {
        if !self.is_read {
            self.promised -= std::mem::take(&mut keys.gone);
        }
    }
}

/// Counts that an opening has found.
pub(crate) struct Counts {
    pub(crate) nodes: u64,
    pub(crate) segments: u64,
    pub(crate) keys: u64,
}

impl Counts {
    /// Returns the number of keys if keys of the same average size filled the free space.
    fn keys_foreseen(&self, space: HeapStats) -> u64 {
        let others_bytes = self.nodes * NODE_BYTES + self.segments * UNIT_BYTES;
        let (all, taken) =
            (space.region_bytes.saturating_sub(others_bytes), space.live_bytes.saturating_sub(others_bytes));
        let count = u128::from(self.keys) * u128::from(all) / u128::from(taken.max(1));
        count.try_into().unwrap_or(u64::MAX)
    }
}

impl Reserve {
    /// Returns the number of spare slots that an opening keeps.
    pub(crate) fn kept_count<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>, counts: &Counts) -> u64 {
        if medium.breaks(canary::RESERVE_NOT_KEPT) {
            return 0;
        }
        let form = NodeForm::of(heap);
        let count = form.node_count(counts.keys);
        let keeps_surplus = heap.chunks().is_exhausted() && !medium.breaks(canary::SURPLUS_NOT_KEPT);
        let all = if keeps_surplus { 2 * form.node_count(counts.keys_foreseen(heap.stats())) } else { 2 * count };
        count.max(all.saturating_sub(counts.nodes))
    }

    pub(crate) fn new(form: NodeForm, spare: Vec<Offset>, named_count: u64, promised: u64) -> Reserve {
        Reserve(Mutex::new(State { form, spare, taken_count: 0, named_count, promised, is_read: false }))
    }

    /// Promises that a lane may add `wanted` keys.
    #[cold]
    #[inline(never)]
    pub(crate) fn promise<M: Medium, D: Dram>(
        &self,
        region: &Region<M, D>,
        keys: &mut Keys,
        wanted: u64,
    ) -> Result<(), Error> {
        let looks = !region.medium().breaks(canary::NODES_NOT_RESERVED);
        let mut count = 0;
        while !self.try_promise(keys, wanted, looks) {
            self.add_slot(region).inspect_err(|_| _ = self.free_surplus(region, count))?;
            count += 1;
        }
        Ok(())
    }

    /// Promises likewise; false if the slots for the keys are missing. A broken variant passes false for `looks`, which
    /// skips the check.
    fn try_promise(&self, keys: &mut Keys, wanted: u64, looks: bool) -> bool {
        let mut state = self.0.lock();
        state.take_back_gone(keys);
        let lacking = wanted.saturating_sub(keys.left);
        let free = if looks { state.free() } else { lacking };
        if lacking > free {
            return false;
        }
        let more = free.min(lacking.max(KEYS_AT_ONCE));
        state.promised += more;
        keys.left += more;
        true
    }

    /// Takes back the promise of the keys that a lane has not added.
    pub(crate) fn take_back(&self, keys: &mut Keys) {
        let mut state = self.0.lock();
        state.promised -= std::mem::take(&mut keys.left);
        state.take_back_gone(keys);
    }

    /// Forgets the promises of `key_count` keys, which were all deleted together. No checkpoint reads the tree.
    pub(crate) fn forget(&self, key_count: u64) {
        self.0.lock().promised -= key_count;
    }

    /// Notes that a checkpoint is about to read the tree. The caller holds the locks of all lanes. A broken variant
    /// does not note it.
    pub(crate) fn begin(&self, is_broken: bool) {
        self.0.lock().is_read = !is_broken;
    }

    fn add_slot<M: Medium, D: Dram>(&self, region: &Region<M, D>) -> Result<(), Error> {
        self.add(region.reserve(NODE_BYTES)?.publish().offset);
        Ok(())
    }

    /// Ensures, before a checkpoint reads the tree, that it has enough slots.
    pub(crate) fn fill<M: Medium, D: Dram>(&self, region: &Region<M, D>) -> Result<(), Error> {
        while self.lacks_slots() {
            self.add_slot(region)?;
        }
        Ok(())
    }

    /// Returns a slot for a node of the running checkpoint.
    pub(crate) fn slot_for_node<M: Medium, D: Dram>(&self, region: &Region<M, D>) -> Result<Offset, Error> {
        loop {
            match self.take() {
                Some(slot) => return Ok(slot),
                None => self.add_slot(region)?,
            }
        }
    }

    /// Takes a spare slot for a node.
    fn take(&self) -> Option<Offset> {
        let mut state = self.0.lock();
        let slot = state.spare.pop();
        state.taken_count += u64::from(slot.is_some());
        slot
    }

    /// Ends the running checkpoint: `slots` are spare again, and the current checkpoint has `named_count` nodes.
    pub(crate) fn end(&self, slots: &[Offset], named_count: u64) {
        let mut state = self.0.lock();
        // Slots are taken from the end: this keeps their order.
        state.spare.extend(slots.iter().rev());
        (state.taken_count, state.named_count, state.is_read) = (0, named_count, false);
    }

    /// Ends a checkpoint that failed: the previous one stays current.
    pub(crate) fn give_up(&self, slots: &[Offset]) {
        let named_count = self.0.lock().named_count;
        self.end(slots, named_count);
    }

    pub(crate) fn add(&self, slot: Offset) {
        self.0.lock().spare.push(slot);
    }

    /// Returns true if the next checkpoint may have more nodes than there are spare slots.
    pub(crate) fn lacks_slots(&self) -> bool {
        let state = self.0.lock();
        (state.spare.len() as u64) < state.form.node_count(state.promised)
    }

    /// Returns true if the next checkpoint would have so many fewer nodes that it is worth making.
    pub(crate) fn shrinks(&self) -> bool {
        let state = self.0.lock();
        state.named_count.saturating_sub(state.form.node_count(state.promised)) > state.named_count / SHARE_WORTH
    }

    /// Removes at most `count_max` slots that are not needed: those with the highest offsets, so that the others are in
    /// few chunks.
    fn surplus(&self, count_max: u64) -> Vec<Offset> {
        let mut state = self.0.lock();
        let count = if state.is_read { 0 } else { state.surplus_count().min(count_max).min(state.spare.len() as u64) };
        if count > 0 {
            state.spare.sort_unstable_by(|one, other| other.cmp(one));
        }
        state.spare.drain(..count as usize).collect()
    }

    /// Frees the slots that are not needed, after a checkpoint. Exception: they stay in an exhausted region, unless the
    /// checkpoint has no keys.
    pub(crate) fn trim<M: Medium, D: Dram>(&self, region: &Region<M, D>) {
        let is_kept = region.heap().chunks().is_exhausted() && self.0.lock().named_count > 0;
        if !is_kept || region.medium().breaks(canary::SURPLUS_NOT_KEPT) {
            self.free_surplus(region, u64::MAX);
        }
    }

    /// Frees half of the `left` surplus slots, and at least [`SLOTS_AT_ONCE`] if there are so many, so that a write
    /// tries again a few times. Returns the number of slots. The caller holds the checkpoint's lock.
    pub(crate) fn free_half<M: Medium, D: Dram>(&self, region: &Region<M, D>, left: u64) -> u64 {
        self.free_surplus(region, SLOTS_AT_ONCE.max(left / 2).min(left))
    }

    /// Frees at most `count_max` slots that are not needed. Returns their number.
    fn free_surplus<M: Medium, D: Dram>(&self, region: &Region<M, D>, count_max: u64) -> u64 {
        let slots = self.surplus(count_max);
        slots.iter().for_each(|&slot| region.heap().free(region.medium(), node_place(slot)));
        slots.len() as u64
    }

    /// Returns the number of slots that are not needed.
    pub(crate) fn surplus_count(&self) -> u64 {
        self.0.lock().surplus_count()
    }

    /// Returns the spare slots.
    pub(crate) fn slots(&self) -> Vec<Offset> {
        self.0.lock().spare.clone()
    }

    /// Returns the number of promised keys.
    pub(crate) fn promised(&self) -> u64 {
        self.0.lock().promised
    }
}
