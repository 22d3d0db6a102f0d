//! Opens the segments of an index:
//!
//! 1. Committed splits are finished (`record`), then the index finishes its own interrupted operations.
//! 2. Live segments of another generation, left by an interrupted `clear`, are marked DEAD ("buried"); ordered. A
//!    crash here leaves some of them to the next open.
//! 3. The directories are built.
//!
//! Opening reads one header line per segment: tens of milliseconds for fifty million items. A medium that is open
//! for reading only is not changed: a committed split is then taken into account without being finished.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use heap::HeapError;
use pmem::{Dram, Medium, Offset};

use super::directory::{Directory, Root};
use super::layout::{Geometry, PREFIX_BYTES, SegmentHeader, State};
use super::record::{SplitRecord, committed, record_of};
use super::{Context, Segmented};

/// The states that committed splits assign to segments.
pub(crate) type States = HashMap<Offset, State>;

/// Finishes the committed splits if the medium is writable. Otherwise returns the states that they assign to
/// segments.
pub(crate) fn finish_splits<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
) -> Result<States, HeapError> {
    let mut states = States::new();
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

/// Returns the states that a committed split assigns to its segments.
pub(crate) fn states_of(split: &SplitRecord) -> impl Iterator<Item = (Offset, State)> {
    let [zero, one] = split.halves;
    [split.old, zero, one].into_iter().filter_map(|offset| Some((offset, split.state_of(offset)?)))
}

/// Returns the live segments of each partition, with their headers.
///
/// # Errors
/// [`HeapError::Damaged`] if a header is damaged.
pub(crate) fn live_segments<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    geometry: Geometry,
    splits: &States,
) -> Result<Vec<Vec<(Offset, SegmentHeader)>>, HeapError> {
    let mut partitions = vec![Vec::new(); geometry.partition_count()];
    let mut damaged = None;
    cx.heap.sweep().segments(&mut |offset| match live_header(cx, splits, offset) {
        Ok(Some(header)) if (header.partition as usize) < partitions.len() => {
            partitions[header.partition as usize].push((offset, header));
        }
        Ok(None) => {}
        _ => damaged = damaged.or(Some(offset)),
    });
    // Buried segments must stay dead until a `clear` reaches their generation again.
    if cx.medium.is_writable() {
        cx.medium.order();
    }
    match damaged {
        Some(offset) => Err(HeapError::Damaged { offset: offset.0, what: "a segment's header is damaged" }),
        None => Ok(partitions),
    }
}

/// Returns the header of a live segment, or `None` for free space. Buries a live segment of another generation.
fn live_header<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    states: &States,
    offset: Offset,
) -> Result<Option<SegmentHeader>, ()> {
    let word = cx.medium.peek(offset);
    if word == 0 {
        return Ok(None);
    }
    let (stored, generation) = SegmentHeader::state_in(word).ok_or(())?;
    let state = states.get(&offset).copied().unwrap_or(stored);
    if state != State::Live {
        return Ok(None);
    }
    if generation != cx.heap.region().generation() {
        if cx.medium.is_writable() {
            mark_dead(cx.medium, offset);
        }
        return Ok(None);
    }
    SegmentHeader::from_words(word, cx.medium.peek(offset.plus(PREFIX_BYTES))).map(Some).ok_or(())
}

/// Builds the directories of all partitions' live segments.
///
/// # Errors
/// [`HeapError::Damaged`] if they do not cover every prefix exactly once.
pub(crate) fn root_of<S: Segmented>(
    partitions: Vec<Vec<Box<S>>>,
    geometry: Geometry,
) -> Result<Box<Root<S>>, HeapError> {
    let directories = partitions.into_iter().zip(0..).map(|(segments, partition)| build(segments, partition, geometry));
    Ok(Root::new(directories.collect::<Result<Vec<_>, _>>()?.into_iter()))
}

fn build<S: Segmented>(segments: Vec<Box<S>>, partition: u32, geometry: Geometry) -> Result<Directory<S>, HeapError> {
    Directory::build(segments, geometry).map_err(|overlapping| match overlapping {
        Some(offset) => HeapError::Damaged { offset: offset.0, what: "two segments claim the same prefix" },
        None => {
            HeapError::Damaged { offset: record_of(partition).0, what: "some keys of this partition have no segment" }
        }
    })
}

/// Marks a segment DEAD, so that no later generation with the same number takes it for its own. The caller orders
/// it.
pub(crate) fn mark_dead<M: Medium>(medium: &M, segment: Offset) {
    if let Some(dead) = SegmentHeader::dead(medium.load(segment, Ordering::Acquire)) {
        medium.store(segment, dead, Ordering::Release);
        medium.flush(segment.span(8));
    }
}
