//! Opening: finish what a crash interrupted, find the live segments, build the directories.
//!
//! 1. Committed splits are finished (`recover`), and batches finished or taken back (`batch`).
//! 2. Live segments of another generation, left by an interrupted `clear`, are buried; order. A crash here leaves some of
//!    them to the next open.
//! 3. The directories are built.
//!
//! One header line is peeked at per segment: tens of milliseconds for fifty million items. A medium opened for reading is not
//! changed: a committed split is taken into account without being finished.

use std::collections::HashMap;

use heap::{FEATURE_EXPIRY, HeapError};
use pmem::{Dram, Medium, Offset};

use super::batch::{Batches, recover};
use super::directory::{Directory, Root};
use super::due::{NEVER, UNKNOWN};
use super::layout::{Geometry, Header, PREFIX_BYTES, State};
use super::recover::{SplitRecord, committed};
use super::segment::Segment;
use super::sweep::bury;
use super::{Context, PartitionedHash};

impl PartitionedHash {
    /// Opens the index of a store.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if a header is damaged, or the live segments do not cover every prefix exactly once.
    pub fn open<M: Medium, D: Dram>(cx: Context<'_, M, D>, geometry: Geometry) -> Result<PartitionedHash, HeapError> {
        let splits = finish_splits(cx, geometry)?;
        let batches = Batches::default();
        recover(cx, &batches)?;
        let mut partitions: Vec<Vec<Box<Segment>>> = (0..geometry.partition_count()).map(|_| Vec::new()).collect();
        let mut damaged = None;
        let due = if cx.heap.has_features(FEATURE_EXPIRY) { UNKNOWN } else { NEVER };
        cx.heap.segments(&mut |offset| match live_header(cx, &splits, offset) {
            Ok(Some(header)) if (header.partition as usize) < partitions.len() => {
                partitions[header.partition as usize].push(Segment::new(offset, header, !cx.medium.is_writable(), due));
            }
            Ok(None) => {}
            _ => damaged = damaged.or(Some(offset)),
        });
        // What was buried stays so before a `clear` brings its generation back.
        if cx.medium.is_writable() {
            cx.medium.order();
        }
        if let Some(offset) = damaged {
            return Err(HeapError::Damaged { offset: offset.0, what: "a segment's header is damaged" });
        }
        let directories = partitions.into_iter().zip(0..).map(|(segments, partition)| build(segments, partition));
        let root = Root::new(directories.collect::<Result<Vec<_>, _>>()?.into_iter());
        Ok(PartitionedHash::new(geometry, root, batches))
    }
}

/// The states that committed splits give to segments; finished for good where the medium can be written.
fn finish_splits<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
) -> Result<HashMap<Offset, State>, HeapError> {
    let mut states = HashMap::new();
    for partition in 0..geometry.partition_count() as u32 {
        let Some(split) = committed(cx.medium, partition)? else { continue };
        if cx.medium.is_writable() {
            split.finish(cx)?;
        } else {
            states.extend(states_of(&split));
        }
    }
    Ok(states)
}

/// The states that a committed split gives to its segments.
pub(super) fn states_of(split: &SplitRecord) -> impl Iterator<Item = (Offset, State)> {
    let [zero, one] = split.halves;
    [split.old, zero, one].into_iter().filter_map(|offset| Some((offset, split.state_of(offset)?)))
}

/// The header of a live segment, `None` for free space. What another generation left alive is buried.
fn live_header<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    states: &HashMap<Offset, State>,
    offset: Offset,
) -> Result<Option<Header>, ()> {
    let word = cx.medium.peek(offset);
    if word == 0 {
        return Ok(None);
    }
    let (stored, generation) = Header::state_in(word).ok_or(())?;
    let state = states.get(&offset).copied().unwrap_or(stored);
    if state != State::Live {
        return Ok(None);
    }
    if generation != cx.heap.generation() {
        if cx.medium.is_writable() {
            bury(cx.medium, offset);
        }
        return Ok(None);
    }
    Header::from_words(word, cx.medium.peek(offset.plus(PREFIX_BYTES))).map(Some).ok_or(())
}

#[expect(clippy::vec_box, reason = "a table stays where it is: its locks are shared by address")]
fn build(segments: Vec<Box<Segment>>, partition: u32) -> Result<Directory, HeapError> {
    Directory::build(segments).map_err(|overlapping| match overlapping {
        Some(offset) => HeapError::Damaged { offset: offset.0, what: "two segments claim the same prefix" },
        None => HeapError::Damaged {
            offset: super::recover::record_of(partition).0,
            what: "a part of this partition's keys has no segment",
        },
    })
}
