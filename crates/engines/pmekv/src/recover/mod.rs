//! Recovery: decides which entries are valid, finds the records, and builds the tree of them.
//!
//! # Valid entries
//! Each entry records up to which sequence the lane was durable before it was written. The highest such sequence in a
//! lane's entries is the lane's *mark*. Up to the mark everything was durable, so every entry is present (otherwise
//! there is damage) and valid, and its record was intact, even if the slot has other contents today. The entries above
//! the mark are the *tail*: they were under way. A put of the tail is valid if its record is intact: the record's slot
//! cannot have been reused, because that needs a later durable entry of the lane, and then the mark would be higher. An
//! entry of a batch is valid if the batch has its end. Damage to the medium in a tail cannot be distinguished from an
//! unfinished write.
//!
//! # Steps, where the store may be written
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 overwrite invalid entries with void ones; flush the tails' valid entries and records | the same decisions |
//! | 2 count the opening; commit and wait for it | the same, permanently |
//! | 3 free what nothing names; serve | the same |
//!
//! A crash in step 1 leaves void or torn entries, which are not valid either. Without step 1, an invalid entry would
//! later be below the mark. From now on the store relies on data that a killed process has stored and not flushed, so
//! step 1 flushes it.

mod live;
mod logs;
mod lost;
mod places;
mod sorted_runs;
mod table;
mod tail;
mod threads;
mod windows;
mod words;

use std::collections::VecDeque;

use heap::{Heap, HeapError, Mark, Place};
use pmem::{Dram, Level, Medium, Offset};

use crate::canary;
use crate::lanes::{Segment, store_word, write_line};
use crate::layout::{OPENING, RECORD_BYTES, ROOT, SEGMENT_ENTRY_COUNT, node_place, record, segment_place};
use crate::node::{self, NodeForm};
use crate::root::Checkpoint;

pub(crate) use live::load;
use logs::FoundLog;
use lost::damaged;
pub(crate) use lost::{Damage, Lost};
use threads::{each_part, thread_count};
use windows::read_nodes;
use words::load_word;

/// The contents of a region.
pub(crate) struct Found {
    pub(crate) checkpoint: Checkpoint,
    logs: Vec<FoundLog>,
    /// The number of earlier openings.
    opening: u64,
}

/// Reads everything except nodes and records; stores nothing.
pub(crate) fn read<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>) -> Result<Found, HeapError> {
    let opening = load_word(medium, OPENING, "the number of the opening is damaged")?;
    let checkpoint = find_checkpoint(medium, heap)?;
    let lanes = 0..heap.region().superblock().partition_count as usize;
    let chains =
        lanes.map(|lane| logs::chain(medium, heap, lane, checkpoint.cuts[lane])).collect::<Result<Vec<_>, _>>()?;
    let segment_count: usize = chains.iter().map(|segments| segments.len()).sum();
    let threads = thread_count(segment_count * SEGMENT_ENTRY_COUNT as usize);
    let read = |lane: usize| logs::read(medium, heap, (lane, checkpoint.cuts[lane]), &chains[lane]);
    let logs = each_part(threads, chains.len(), read).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut found = Found { logs, checkpoint, opening };
    tail::decide(medium, heap, &mut found.logs)?;
    Ok(found)
}

impl Found {
    /// Returns the number of this opening.
    pub(crate) fn opening(&self) -> u64 {
        self.opening + 1
    }

    /// Returns the number of segments of all lanes.
    pub(crate) fn segment_count(&self) -> u64 {
        self.logs.iter().map(|log| log.segments.len() as u64).sum()
    }

    /// Returns the number of entries that are not in the nodes.
    pub(crate) fn entry_count(&self) -> u64 {
        self.logs.iter().map(|log| log.next() - 1 - log.cut).sum()
    }

    /// Marks the places of the log and the checkpoint as used in the heap.
    pub(crate) fn mark<D: Dram>(&self, heap: &Heap<D>) -> Result<(), HeapError> {
        let segments = self.logs.iter().flat_map(|log| &log.segments).map(|segment| segment_place(segment.at));
        let nodes = self.checkpoint.nodes.iter().map(|&at| node_place(at));
        segments.chain(nodes).try_for_each(|place| reach(heap, place))
    }

    /// Steps 1 and 2.
    pub(crate) fn settle<M: Medium, D: Dram>(&self, medium: &M, heap: &Heap<D>) -> Result<(), HeapError> {
        let uuid = heap.region().superblock().uuid;
        for log in &self.logs {
            for (at, line) in log.voids(&uuid) {
                if !medium.breaks(canary::DROPPED_NOT_VOIDED) {
                    write_line(medium, at, &line);
                }
            }
            if !medium.opens_durable() && !medium.breaks(canary::TAIL_LEFT_AS_FOUND) {
                log.flush_tail(medium)?;
            }
        }
        store_word(medium, OPENING, self.opening());
        Ok(medium.wait(medium.commit(Level::default()))?)
    }

    /// Returns the checkpoint, and each log's next sequence and segments.
    pub(crate) fn into_logs(self) -> (Checkpoint, Vec<(u64, VecDeque<Segment>)>) {
        (self.checkpoint, self.logs.into_iter().map(|log| (log.next(), log.segments)).collect())
    }
}

/// Reads the checkpoint that the root names, and verifies its nodes.
pub(crate) fn read_checkpoint<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>) -> Result<Checkpoint, HeapError> {
    let (checkpoint, form) = (find_checkpoint(medium, heap)?, NodeForm::of(heap));
    let nodes = read_nodes(medium, (form, checkpoint.number), &checkpoint.nodes, None);
    let key_count = nodes.map(|keys| keys.map(|keys| keys.len() as u64)).sum::<Result<u64, _>>()?;
    checkpoint.has_keys(medium, key_count)?;
    Ok(checkpoint)
}

/// Reads the checkpoint that the root names and the places of its nodes, whose checksums are not compared.
fn find_checkpoint<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>) -> Result<Checkpoint, HeapError> {
    let number = load_word(medium, ROOT, "the root is damaged")?;
    let at = place_of_record(medium, number);
    // SAFETY: no thread writes while the store is being opened.
    let bytes = unsafe { medium.bytes(at.span(RECORD_BYTES as u64)) }?;
    let (mut checkpoint, node_count) = Checkpoint::from_bytes(bytes, number, &heap.region().superblock().uuid)
        .ok_or(HeapError::Damaged { offset: at.0, what: "a checkpoint's record is damaged" })?;
    let followed = follow(medium, heap, &mut checkpoint, node_count);
    checkpoint.nodes.reverse();
    if followed.is_err() {
        // A node that names an impossible place is damaged itself: report that node.
        let form = NodeForm::of(heap);
        read_nodes(medium, (form, number), &checkpoint.nodes, None).try_for_each(|keys| keys.map(drop))?;
    }
    followed?;
    if checkpoint.nodes.len() as u64 != node_count {
        return Err(HeapError::Damaged { offset: at.0, what: "a checkpoint has fewer nodes than it records" });
    }
    Ok(checkpoint)
}

/// Collects the places of a checkpoint's nodes, from the last to the first.
fn follow<M: Medium, D: Dram>(
    medium: &M,
    heap: &Heap<D>,
    checkpoint: &mut Checkpoint,
    node_count: u64,
) -> Result<(), HeapError> {
    let mut next = checkpoint.last;
    while !next.is_null() {
        if checkpoint.nodes.len() as u64 == node_count {
            return Err(HeapError::Damaged { offset: next.0, what: "a checkpoint has more nodes than it records" });
        }
        heap.table().check_place(node_place(next)).map_err(damaged)?;
        checkpoint.nodes.push(next);
        next = node::previous(node::bytes(medium, next)?);
    }
    Ok(())
}

fn place_of_record<M: Medium>(medium: &M, number: u64) -> Offset {
    if medium.breaks(canary::RECORD_IN_PLACE) { record(0) } else { record(number) }
}

impl Checkpoint {
    /// Returns an error unless the nodes have as many keys as the checkpoint records.
    fn has_keys<M: Medium>(&self, medium: &M, key_count: u64) -> Result<(), HeapError> {
        let offset = place_of_record(medium, self.number).0;
        match key_count == self.key_count {
            true => Ok(()),
            false => Err(HeapError::Damaged { offset, what: "a checkpoint's key count does not match its nodes" }),
        }
    }
}

fn reach<D: Dram>(heap: &Heap<D>, place: Place) -> Result<(), HeapError> {
    set(heap.sweep().expect_mark(place).map_err(damaged)?, place.offset)
}

/// Sets the mark of a place; an error if the place was named before.
fn set(mark: Mark<'_>, at: Offset) -> Result<(), HeapError> {
    match mark.set() {
        true => Ok(()),
        false => Err(HeapError::Damaged { offset: at.0, what: "two references name the same place" }),
    }
}
