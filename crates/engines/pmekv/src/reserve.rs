//! The reserve: slots for the nodes of checkpoints, ahead of need. In a full region it is the checkpoint that makes room in the log (`room.rs`), so the checkpoint
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
//! Nothing of this is stored. An opening keeps slots that nothing names for the reserve before the sweep gives any of them away (`open.rs`): those that were the
//! reserve before are among them. A store of a version without a reserve may lack some, until there is room: no keys are added, and a checkpoint ends before
//! any key is read.

use engine::Error;
use parking_lot::Mutex;
use pmem::{Dram, Medium, Offset};

use crate::Pmekv;
use crate::canary;
use crate::lane::Log;
use crate::layout::{NODE_BYTES, node_place};
use crate::node::NodeForm;

/// Keys that a lane is promised at once, if there are so many: few enough that what 64 lanes do not use are some tens of nodes.
const KEYS_AT_ONCE: u64 = 128;

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

impl Reserve {
    /// How many spare slots an opening wants that found so many nodes and keys.
    pub(crate) fn wanted_count(form: NodeForm, named_count: u64, key_count: u64) -> u64 {
        let count = form.node_count(key_count);
        count.max((2 * count).saturating_sub(named_count))
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

    /// Takes a slot out that is not needed.
    fn surplus(&self) -> Option<Offset> {
        let mut state = self.0.lock();
        let is_needed =
            state.node_count_max(state.slot_count().saturating_sub(1)) < state.form.node_count(state.promised);
        if state.is_read || is_needed { None } else { state.spare.pop() }
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
        if !is_full || !is_long || self.reserve.lacks_slots() || self.room.met_damage() {
            return provided;
        }
        self.lanes.provide(log, (&self.medium, &self.heap), entries, 0)
    }

    #[cold]
    #[inline(never)]
    fn promise(&self, log: &mut Log, added: u64) -> Result<(), Error> {
        let looks = !self.medium.breaks(canary::NODES_NOT_RESERVED);
        while !self.reserve.promise(&mut log.keys, added, looks) {
            self.add_slot().inspect_err(|_| self.give_surplus_back())?;
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

    /// Frees the slots that are not needed.
    pub(crate) fn give_surplus_back(&self) {
        while let Some(slot) = self.reserve.surplus() {
            self.heap.free(&self.medium, node_place(slot));
        }
    }
}
