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

use std::iter::{self, Peekable};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Engine, Error};
use parking_lot::MutexGuard;
use pmem::{Dram, Level, Medium, Offset};

use crate::bytes::{Line, is_sealed, put_u64, salt, seal_line, u64_at};
use crate::lane::{Log, store_word};
use crate::layout::{LANE_COUNT_MAX, RECORD_BYTES, RECORD_HEADER_BYTES, ROOT, record, segment_place};
use crate::node::{self, Draft, Named, NodeForm, Stored};
use crate::{Pmekv, broken, canary};

/// The checkpoint that the root names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) number: u64,
    /// The last node, or null.
    pub(crate) last: Offset,
    pub(crate) key_count: u64,
    pub(crate) cuts: [u64; LANE_COUNT_MAX],
    /// The nodes, from the first to the last.
    pub(crate) nodes: Vec<Offset>,
}

/// Figures of the current checkpoint, readable without waiting for the running one.
#[derive(Default)]
pub(crate) struct LastCheckpoint {
    pub(crate) number: AtomicU64,
    pub(crate) node_count: AtomicU64,
    /// Records that could not be read when a checkpoint was tried afterwards.
    pub(crate) damaged_count: AtomicU64,
}

impl LastCheckpoint {
    pub(crate) fn set(&self, counts: &Checkpoint) {
        self.number.store(counts.number, Ordering::Relaxed);
        self.node_count.store(counts.nodes.len() as u64, Ordering::Relaxed);
        self.damaged_count.store(0, Ordering::Relaxed);
    }
}

impl Checkpoint {
    /// Creates a checkpoint of no keys.
    pub(crate) fn empty(number: u64, cuts: [u64; LANE_COUNT_MAX]) -> Checkpoint {
        Checkpoint { number, last: Offset::NULL, key_count: 0, cuts, nodes: Vec::new() }
    }

    pub(crate) fn to_bytes(&self, uuid: &[u8; 16]) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let (header, cuts) = bytes.split_at_mut(RECORD_HEADER_BYTES);
        self.cuts.iter().enumerate().for_each(|(lane, cut)| put_u64(cuts, lane * 8, *cut));
        let header: &mut Line = header.try_into().expect("a line");
        put_u64(header, 0, self.number);
        put_u64(header, 8, self.last.0);
        put_u64(header, 16, self.nodes.len() as u64);
        put_u64(header, 24, self.key_count);
        seal_line(header, salt(uuid), cuts);
        bytes
    }

    /// Returns the checkpoint record of this number and its number of nodes, which are not read yet; `None` if the
    /// bytes are not that record.
    pub(crate) fn from_bytes(bytes: &[u8], number: u64, uuid: &[u8; 16]) -> Option<(Checkpoint, u64)> {
        let (header, cuts) = bytes.split_at(RECORD_HEADER_BYTES);
        let header: &Line = header.try_into().expect("a line");
        if !is_sealed(header, salt(uuid), cuts) || u64_at(header, 0) != number {
            return None;
        }
        let cuts = std::array::from_fn(|lane| u64_at(cuts, lane * 8));
        let key_count = u64_at(header, 24);
        let last = Offset(u64_at(header, 8));
        Some((Checkpoint { number, last, key_count, cuts, nodes: Vec::new() }, u64_at(header, 16)))
    }
}

/// Steps 3 and 4, except the commit, which the caller requests: the checkpoint is current after it.
pub(crate) fn name<M: Medium>(medium: &M, uuid: &[u8; 16], checkpoint: &Checkpoint) {
    let at = if medium.breaks(canary::RECORD_IN_PLACE) { record(0) } else { record(checkpoint.number) };
    // SAFETY: the root does not name this record, and the caller holds the checkpoint's lock.
    unsafe { medium.stream(at, &[&checkpoint.to_bytes(uuid)]) };
    medium.order_unless(canary::ROOT_BEFORE_NODES);
    store_word(medium, ROOT, checkpoint.number);
}

/// Returns the key that nodes have for a record, if it differs from `key`. Reads nodes up to the record, or else up to
/// `key`.
fn key_before<'n>(
    nodes: &mut Peekable<impl Iterator<Item = Named<'n>>>,
    stored: &Stored,
    key: &[u8],
) -> Option<&'n [u8]> {
    let is_its = |named: &Named<'_>| named.stored.record == stored.record;
    let mut passed =
        iter::from_fn(|| nodes.next_if(|named| is_its(named) || named.key.is_none_or(|other| other <= key)));
    let its = passed.find(is_its).filter(|named| named.stored.checksum == stored.checksum);
    its.and_then(|named| named.key).filter(|other| *other != key)
}

/// Returns the last sequence of each lane.
pub(crate) fn cuts_of(lanes: &[MutexGuard<'_, Log>]) -> [u64; LANE_COUNT_MAX] {
    let mut cuts = [0; LANE_COUNT_MAX];
    lanes.iter().for_each(|log| cuts[log.number] = log.next - 1);
    cuts
}

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Makes a checkpoint, and shortens the log.
    ///
    /// # Errors
    /// The region is full, or the medium fails; then the previous checkpoint stays current.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.make_checkpoint(&mut self.checkpoint.lock())
    }

    /// Carries out the steps.
    pub(crate) fn make_checkpoint(&self, counts: &mut Checkpoint) -> Result<(), Error> {
        self.reader.region().may_write()?;
        if self.lanes.entry_count() == 0 {
            return Ok(());
        }
        if self.reader.region().medium().breaks(canary::FREED_BEFORE_ROOT) {
            counts.nodes.drain(..).for_each(|node| self.reserve.add(node));
        }
        self.fill_reserve()?;
        let (mut cuts, mut entry_count) = self.cuts();
        self.reader.is_learnt()?;
        let (nodes, key_count) = self.write_nodes(counts)?;
        if self.reader.region().medium().breaks(canary::MARKS_AFTER_TREE) {
            (cuts, entry_count) = self.cuts();
        }
        let last = nodes.last().copied().unwrap_or_default();
        let new = Checkpoint { number: counts.number + 1, last, key_count, cuts, nodes };
        name(self.reader.region().medium(), &self.uuid(), &new);
        self.reader.region().medium().commit(Level::default());
        self.reader.region().medium().health()?;
        let before = mem::replace(counts, new);
        self.last_checkpoint.set(counts);
        self.let_go(&before, &counts.cuts, counts.nodes.len() as u64);
        self.lanes.count_entries(0, entry_count);
        Ok(())
    }

    /// Step 5: frees the nodes of `before`, and segments up to the new cuts.
    pub(crate) fn let_go(&self, before: &Checkpoint, cuts: &[u64; LANE_COUNT_MAX], node_count: u64) {
        self.reserve.end(&before.nodes, node_count);
        self.checkpoint_damage.clear();
        for (lane, &cut) in cuts.iter().enumerate().take(self.lanes.count()) {
            let mut log = self.lanes.lock(lane);
            let gone = log.cut(cut);
            self.reserve.take_back(&mut log.keys);
            drop(log);
            gone.into_iter()
                .for_each(|at| self.reader.region().heap().free(self.reader.region().medium(), segment_place(at)));
        }
        self.trim_reserve();
    }

    /// Step 1. Returns the cuts, and the number of entries in the log.
    fn cuts(&self) -> ([u64; LANE_COUNT_MAX], u64) {
        if self.reader.region().medium().breaks(canary::BATCH_CUT_APART) {
            return broken::cuts_apart(self);
        }
        let lanes = self.lanes.lock_all();
        self.reserve.begin(self.reader.region().medium().breaks(canary::GONE_WHILE_READ));
        (cuts_of(&lanes), self.lanes.entry_count())
    }

    /// Step 2. Returns the nodes, and their number of keys.
    fn write_nodes(&self, counts: &Checkpoint) -> Result<(Vec<Offset>, u64), Error> {
        let mut nodes = Vec::new();
        let written = self.write_nodes_to(counts, &mut nodes);
        if let Err(error) = &written {
            self.reserve.give_up(&nodes);
            if matches!(error, Error::Corrupt { .. }) {
                self.note_damage()?;
            }
        }
        written.map(|key_count| (nodes, key_count))
    }

    fn write_nodes_to(&self, counts: &Checkpoint, nodes: &mut Vec<Offset>) -> Result<u64, Error> {
        let (form, number) = (NodeForm::of(self.reader.region().heap()), counts.number + 1);
        let (mut draft, mut key_count, mut has_space_ahead) = (Draft::new(form), 0, true);
        let mut last: Vec<u8> = Vec::new();
        let before = counts
            .nodes
            .iter()
            .filter_map(|&at| node::load(self.reader.region().medium(), form, counts.number, at).ok());
        let mut before = before.flatten().peekable();
        self.reader.each_record(&mut |record, item| {
            let lane = self.lanes.of(self.reader.hash(item.key)) as u32;
            let (stored, key) = (Stored { record, checksum: item.header.checksum, lane }, item.key);
            let key = match key_before(&mut before, &stored, key) {
                Some(other) if !self.reader.records().read(stored.record)?.is_intact() => other,
                _ => key,
            };
            // An opening would refuse such nodes.
            if key_count > 0 && *last >= *key {
                let offset = stored.record.offset().0;
                return Err(Error::Corrupt { offset, what: "a record's key is out of order" });
            }
            last.clear();
            last.extend_from_slice(key);
            draft.push(stored, key);
            key_count += 1;
            if draft.is_full() {
                self.write_node(number, nodes, &mut draft)?;
                has_space_ahead = has_space_ahead && self.keeps_space_ahead();
            }
            Ok(())
        })?;
        if !draft.is_empty() {
            self.write_node(number, nodes, &mut draft)?;
        }
        Ok(key_count)
    }

    /// Prepares free space ahead: during a checkpoint of many keys, writers may use all that is ready. Returns false if
    /// no more can be prepared.
    fn keeps_space_ahead(&self) -> bool {
        !self.reader.region().heap().runs_low()
            || self
                .reader
                .region()
                .heap()
                .prepare(self.reader.region().medium(), self.reader.region().heap().ahead_bytes())
    }

    /// Writes a node; the draft is empty afterwards.
    fn write_node(&self, number: u64, nodes: &mut Vec<Offset>, draft: &mut Draft) -> Result<(), Error> {
        let (at, previous) = (self.slot_for_node()?, nodes.last().copied().unwrap_or_default());
        nodes.push(at);
        // SAFETY: the slot belongs to the reserve, and nothing names it.
        unsafe { self.reader.region().medium().stream(at, &[draft.seal(number, previous)]) };
        draft.clear();
        Ok(())
    }
}
