//! The reserve: slots for the nodes of checkpoints, ahead of need. In a full region it is the checkpoint that makes room in the log (`space.rs`), so the checkpoint
//! must not need any.
//!
//! # Invariant
//! *Promised* are the keys that are there and those that lanes may still add without asking. They fill `c` nodes. Of `s` slots, which are those of the
//! checkpoint that counts and the spare ones, `n` are that checkpoint's. Then there are `c` spare ones (`s - n >= c`), and as many for the checkpoint after the
//! next (`s >= 2c`):
//! - A checkpoint meets promised keys alone, so it has at most `c` nodes, and finds a spare slot for each.
//! - After it `n <= c`, so that `s - n >= c` still.
//! - A lane asks before it adds a key that was not promised, and where no slots can be had for that, the region is full.
//!
//! A key that was deleted while a checkpoint reads the tree may have been met, and another key that comes instead may be met, too. So deleted keys stay promised
//! until the checkpoint is over.
//!
//! # Surplus
//! Where keys are deleted there are more slots than these. A chunk of slots that is given back goes to whatever wants room first, and one that is wanted again must be
//! empty, which in a region that was full of records none may be for long. So in a region that was used to the end (`Heap::is_exhausted`) all slots are kept
//! until the region grows, or a write finds no room otherwise (`space.rs`).
//!
//! Nothing of this is stored. An opening keeps slots that nothing names for the reserve before the sweep gives any of them away (`open.rs`): those that were the
//! reserve before are among them. Of such a region an opening keeps as many as there would be if other keys, as large, took the room that is free: what else lies free in
//! chunks of that class was of records. A store of a version without a reserve may lack some, until there is room: no keys are added, and a checkpoint ends before
//! any key is read.

use engine::Error;
use heap::{Heap, HeapStats};
use parking_lot::Mutex;
use pmem::{Dram, Medium, Offset};

use crate::Pmekv;
use crate::canary;
use crate::lane::Log;
use crate::layout::{NODE_BYTES, UNIT_BYTES, node_place};
use crate::node::NodeForm;

/// Keys that a lane is promised at once, if there are so many: few enough that what 64 lanes do not use are some tens of nodes.
const KEYS_AT_ONCE: u64 = 128;

/// Slots that a write is given at once, at least, that finds no room: about a chunk of them.
const SLOTS_AT_ONCE: u64 = 64;

/// A checkpoint is made for room if it gives back more than one node of so many.
const SHARE_WORTH: u64 = 8;

/// What a lane may add, and what it has deleted, under its lock.
#[derive(Default)]
pub(crate) struct Keys {
    /// Keys that may be added without asking.
    pub(crate) left: u64,
    /// Keys that were deleted, and are promised still.
    pub(crate) gone: u64,
}

/// See the head of this module.
pub(crate) struct Reserve(Mutex<State>);

struct State {
    /// What nodes have of keys.
    form: NodeForm,
    spare: Vec<Offset>,
    /// Slots that the checkpoint under way has taken.
    taken_count: u64,
    /// Nodes of the checkpoint that counts.
    named_count: u64,
    promised: u64,
    /// A checkpoint reads the tree.
    is_read: bool,
}

impl NodeForm {
    /// Nodes that so many keys fill.
    fn node_count(self, key_count: u64) -> u64 {
        key_count.div_ceil(self.key_count_max() as u64)
    }
}

impl State {
    fn slot_count(&self) -> u64 {
        self.spare.len() as u64 + self.taken_count + self.named_count
    }

    /// How many nodes so many slots suffice for.
    fn node_count_max(&self, slot_count: u64) -> u64 {
        slot_count.saturating_sub(self.named_count).min(slot_count / 2)
    }

    /// Slots that the reserve does not need.
    fn surplus_count(&self) -> u64 {
        let needed_count = self.form.node_count(self.promised);
        self.slot_count().saturating_sub(needed_count + needed_count.max(self.named_count))
    }

    /// Keys that may be promised besides.
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

/// What an opening has found.
pub(crate) struct Counts {
    pub(crate) nodes: u64,
    pub(crate) segments: u64,
    pub(crate) keys: u64,
}

impl Counts {
    /// How many keys there would be if others, as large on average, took the room that is free.
    fn keys_foreseen(&self, space: HeapStats) -> u64 {
        let others_bytes = self.nodes * NODE_BYTES + self.segments * UNIT_BYTES;
        let (all, taken) =
            (space.region_bytes.saturating_sub(others_bytes), space.live_bytes.saturating_sub(others_bytes));
        let count = u128::from(self.keys) * u128::from(all) / u128::from(taken.max(1));
        count.try_into().unwrap_or(u64::MAX)
    }
}

impl Reserve {
    /// How many spare slots an opening keeps.
    pub(crate) fn kept_count<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>, counts: &Counts) -> u64 {
        if medium.breaks(canary::RESERVE_NOT_KEPT) {
            return 0;
        }
        let form = NodeForm::of(heap);
        let count = form.node_count(counts.keys);
        let keeps_surplus = heap.is_exhausted() && !medium.breaks(canary::SURPLUS_NOT_KEPT);
        let all = if keeps_surplus { 2 * form.node_count(counts.keys_foreseen(heap.stats())) } else { 2 * count };
        count.max(all.saturating_sub(counts.nodes))
    }

    pub(crate) fn new(form: NodeForm, spare: Vec<Offset>, named_count: u64, promised: u64) -> Reserve {
        Reserve(Mutex::new(State { form, spare, taken_count: 0, named_count, promised, is_read: false }))
    }

    /// Sees that a lane may add so many keys; false if there are not the slots for that. A twin does not look.
    fn promise(&self, keys: &mut Keys, wanted: u64, looks: bool) -> bool {
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

    /// The lane may add none any more.
    pub(crate) fn take_back(&self, keys: &mut Keys) {
        let mut state = self.0.lock();
        state.promised -= std::mem::take(&mut keys.left);
        state.take_back_gone(keys);
    }

    /// All keys were deleted at once, and no checkpoint reads the tree.
    pub(crate) fn forget(&self, key_count: u64) {
        self.0.lock().promised -= key_count;
    }

    /// A checkpoint is about to read the tree. The caller holds all lanes' locks. A twin does not say so.
    pub(crate) fn begin(&self, is_broken: bool) {
        self.0.lock().is_read = !is_broken;
    }

    /// A slot for a node.
    fn take(&self) -> Option<Offset> {
        let mut state = self.0.lock();
        let slot = state.spare.pop();
        state.taken_count += u64::from(slot.is_some());
        slot
    }

    /// The checkpoint under way is over: these slots have no node any more, and so many have one that counts.
    pub(crate) fn end(&self, slots: &[Offset], named_count: u64) {
        let mut state = self.0.lock();
        // They are taken from the end: in the order that they had.
        state.spare.extend(slots.iter().rev());
        (state.taken_count, state.named_count, state.is_read) = (0, named_count, false);
    }

    /// The same of a checkpoint that failed: the one before counts on.
    pub(crate) fn give_up(&self, slots: &[Offset]) {
        let named_count = self.0.lock().named_count;
        self.end(slots, named_count);
    }

    pub(crate) fn add(&self, slot: Offset) {
        self.0.lock().spare.push(slot);
    }

    /// There is no slot for each node that the next checkpoint may have.
    fn lacks_slots(&self) -> bool {
        let state = self.0.lock();
        (state.spare.len() as u64) < state.form.node_count(state.promised)
    }

    /// The next checkpoint has so many fewer nodes that they are worth it.
    pub(crate) fn shrinks(&self) -> bool {
        let state = self.0.lock();
        state.named_count.saturating_sub(state.form.node_count(state.promised)) > state.named_count / SHARE_WORTH
    }

    /// Takes slots out that are not needed, so many at most: those that lie last in the region, so that the others lie in few chunks.
    fn surplus(&self, count_max: u64) -> Vec<Offset> {
        let mut state = self.0.lock();
        let count = if state.is_read { 0 } else { state.surplus_count().min(count_max).min(state.spare.len() as u64) };
        if count > 0 {
            state.spare.sort_unstable_by(|one, other| other.cmp(one));
        }
        state.spare.drain(..count as usize).collect()
    }

    /// How many slots are not needed.
    pub(crate) fn surplus_count(&self) -> u64 {
        self.0.lock().surplus_count()
    }

    /// The spare slots.
    pub(crate) fn slots(&self) -> Vec<Offset> {
        self.0.lock().spare.clone()
    }

    /// Keys that are promised.
    pub(crate) fn promised(&self) -> u64 {
        self.0.lock().promised
    }
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Comes before entries are written, under the lane's lock: its log has room for so many, and then for `spare` segments more; and so many keys may be added.
    #[inline(always)]
    pub(crate) fn provide(&self, log: &mut Log, entries: u64, spare: usize, added: u64) -> Result<(), Error> {
        if added > log.keys.left {
            self.promise(log, added)?;
        }
        let provided = self.lanes.provide(log, (&self.medium, &self.heap), entries, spare);
        if provided.is_ok() { provided } else { self.provide_without_spare(log, entries, provided) }
    }

    /// In a full region a lane does without a segment ahead of need if it has one that a checkpoint will give back.
    #[cold]
    #[inline(never)]
    fn provide_without_spare(&self, log: &mut Log, entries: u64, provided: Result<(), Error>) -> Result<(), Error> {
        let is_long = log.segments.len() + usize::from(entries > log.left) > 1;
        let is_full = provided.as_ref().is_err_and(Error::is_full);
        if !is_full || !is_long || self.reserve.lacks_slots() || self.checkpoint_damage.met_damage() {
            return provided;
        }
        self.lanes.provide(log, (&self.medium, &self.heap), entries, 0)
    }

    #[cold]
    #[inline(never)]
    fn promise(&self, log: &mut Log, added: u64) -> Result<(), Error> {
        let looks = !self.medium.breaks(canary::NODES_NOT_RESERVED);
        let mut count = 0;
        while !self.reserve.promise(&mut log.keys, added, looks) {
            self.add_slot().inspect_err(|_| _ = self.free_surplus(count))?;
            count += 1;
        }
        Ok(())
    }

    fn add_slot(&self) -> Result<(), Error> {
        let slot = self.heap.reserve(&self.medium, NODE_BYTES, epoch::thread_index())?;
        self.reserve.add(slot.publish().offset);
        Ok(())
    }

    /// Comes before a checkpoint reads the tree.
    pub(crate) fn fill_reserve(&self) -> Result<(), Error> {
        while self.reserve.lacks_slots() {
            self.add_slot()?;
        }
        Ok(())
    }

    /// A slot for a node of the checkpoint under way.
    pub(crate) fn slot_for_node(&self) -> Result<Offset, Error> {
        loop {
            match self.reserve.take() {
                Some(slot) => return Ok(slot),
                None => self.add_slot()?,
            }
        }
    }

    /// Comes behind a checkpoint: frees the slots that are not needed, where the region has not been used to its end.
    pub(crate) fn trim_reserve(&self) {
        if !self.heap.is_exhausted() || self.medium.breaks(canary::SURPLUS_NOT_KEPT) {
            self.free_surplus(u64::MAX);
        }
    }

    /// Frees half of the slots that are not needed, of so many at most that are left to be freed, so that a write tries again a few times; false if there are none. The
    /// caller does not hold the checkpoint's lock.
    pub(crate) fn give_surplus_up(&self, left: &mut u64) -> bool {
        if *left == 0 {
            return false;
        }
        let _no_checkpoint = self.checkpoint.lock();
        let count = self.free_surplus(SLOTS_AT_ONCE.max(*left / 2).min(*left));
        *left -= count;
        count > 0
    }

    /// Frees slots that are not needed, so many at most; how many.
    fn free_surplus(&self, count_max: u64) -> u64 {
        let slots = self.reserve.surplus(count_max);
        slots.iter().for_each(|&slot| self.heap.free(&self.medium, node_place(slot)));
        slots.len() as u64
    }
}
