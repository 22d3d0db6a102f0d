//! The reaper: deletes expired keys.
//!
//! The table does not index expiries, so the reaper walks it, one segment per step. It walks from the first to the last
//! segment, pauses, and begins again if the walk met an item that expires, or if one was put since the walk began. A
//! store without such items is walked once after open, and not again.
//!
//! An expired key is deleted by a write that checks again, under the locks, that its slot is unchanged: a renewed key
//! stays.

use std::time::Duration;

use engine::expectation::REST;
use engine::{COPIED_BYTES_MAX, Error, ExpiredItem, Outcome, PriorState, Progress, WriteResult};
use index::block_hash::Slot;
use index::segmented::Cursor;
use parking_lot::MutexGuard;
use pmem::{Dram, Medium};

use super::Work;
use crate::writer::Writer;

/// The time that a writer waits for the thread that is doing a step before it continues without a step.
pub(super) const TURN_MAX: Duration = Duration::from_millis(1);

/// Walks a segment. A callback may use the store, so the background lock is released before callbacks.
pub(super) fn step<M: Medium, D: Dram>(
    mut work: MutexGuard<'_, Work>,
    writer: &Writer<M, D>,
) -> Result<Progress, Error> {
    let expiring = writer.expiring();
    let cursor = match work.reap {
        Some(cursor) => cursor,
        None if expiring.begin_walk() => Cursor::default(),
        None => return Ok(Progress::Idle),
    };
    let mut reaped = Vec::new();
    let walked = reap_segment(writer, cursor, &mut reaped);
    // A segment that could not be walked is repeated in the next step.
    let next = *walked.as_ref().unwrap_or(&cursor);
    work.reap = (!next.is_done()).then_some(next);
    let is_to_rest = next.is_done() && expiring.end_walk();
    drop(work);
    // These keys are deleted, even if the walk failed after them.
    reaped.into_iter().for_each(|item| expiring.hook().notify(item));
    Ok(match walked?.is_done() {
        false => Progress::More,
        true if is_to_rest => Progress::Rest(REST),
        true => Progress::Idle,
    })
}

/// Deletes the expired keys of a segment. Returns the next segment, or the same one if many values were copied for the
/// callback.
fn reap_segment<M: Medium, D: Dram>(
    writer: &Writer<M, D>,
    cursor: Cursor,
    reaped: &mut Vec<ExpiredItem>,
) -> Result<Cursor, Error> {
    let (keys, expiring) = (writer.keys(), writer.expiring());
    let _pin = epoch::pin();
    let (shown, next) = keys.table().visit(keys.medium(), cursor)?;
    let (mut deleted_count, mut copied_bytes) = (0, 0);
    for (_, slot) in &shown.slots {
        // A caller that requests the damaged key gets the error.
        let Ok(seen) = keys.contents(slot) else { continue };
        if !seen.expiry.is_never() {
            expiring.expectation().expect();
        }
        let is_due = keys.clock().is_past(seen.expiry) && keys.intact_contents(slot).is_ok();
        let removal = if is_due { writer.key_changes().removal(seen.key) } else { None };
        if removal.is_some()
            && let Some(outcome) = reap_key(writer, seen.key, slot)?
        {
            expiring.note_reaped();
            deleted_count += 1;
            copied_bytes += outcome.expired.as_ref().map_or(0, ExpiredItem::len_bytes);
            reaped.extend(outcome.expired);
        }
        if copied_bytes > COPIED_BYTES_MAX {
            return Ok(cursor);
        }
    }
    expiring.note_segment(shown.slots.len() as u64, deleted_count);
    Ok(next)
}

/// Deletes a key if it is still expired. `None` if it is not, or if damage in the key's buckets prevents the
/// deletion: a retry would fail as well.
fn reap_key<M: Medium, D: Dram>(writer: &Writer<M, D>, key: &[u8], slot: &Slot) -> Result<Option<Outcome>, Error> {
    let is_same = &mut |found: Option<&Slot>| found == Some(slot);
    match writer.write(writer.keys().key(key)?, &mut None, is_same) {
        Err(Error::Corrupt { .. }) => Ok(None),
        reaped => Ok(Some(reaped?).filter(|outcome| outcome.answer == WriteResult::Done(PriorState::Expired))),
    }
}
