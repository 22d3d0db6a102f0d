//! Several operations at once, on one queue.
//!
//! All completions that have arrived are taken before further commands are sent, together: a command alone would cost the queue's two
//! ends a call each, and the device would find no others for its group.

use nvme::{Kv, Status};

use crate::Error;
use crate::by_id::ById;
use crate::operation::{NAMESPACE, Operation, Outcome, ROOM_BYTES};
use crate::queue::Queue;

/// Room for data of commands that are under way at once. A device goes on reading while it has so little to send, so that sending to
/// a device never waits for what it sends.
const ROOM_BYTES_MAX: usize = 128 << 10;

/// Runs the operations that have no outcome; an error comes with the numbers of those that were under way.
pub(crate) fn run_some(
    queue: &mut Queue,
    entry_count: u16,
    operations: &[Operation],
    outcomes: &mut [Option<Outcome>],
) -> Result<(), (Error, Vec<usize>)> {
    let mut under_way = ById::default();
    let mut long = Vec::new();
    run_at_once(queue, entry_count, operations, outcomes, (&mut under_way, &mut long))
        .map_err(|error| (error, under_way.into_values().collect::<Vec<_>>()))?;
    for number in long {
        let outcome = retrieve_long(queue, &operations[number]).map_err(|error| (error, vec![number]))?;
        outcomes[number] = Some(outcome);
    }
    Ok(())
}

/// The same, but for values that are longer than the room they were given: those are noted in `long`.
fn run_at_once(
    queue: &mut Queue,
    entry_count: u16,
    operations: &[Operation],
    outcomes: &mut [Option<Outcome>],
    (under_way, long): (&mut ById<usize>, &mut Vec<usize>),
) -> Result<(), Error> {
    let count_max = usize::from(entry_count.saturating_sub(1).max(1));
    let (mut next, mut room_bytes) = (0, 0);
    loop {
        while let Some(operation) = operations.get(next) {
            let room = if outcomes[next].is_none() { room_of(operation) } else { 0 };
            if under_way.len() >= count_max || room_bytes + room > ROOM_BYTES_MAX {
                break;
            }
            if outcomes[next].is_none() {
                let (kv, value) = operation.command()?;
                under_way.insert(queue.submit(kv.command(0, NAMESPACE), value, room), next);
                room_bytes += room;
            }
            next += 1;
        }
        if under_way.len() == 0 {
            return Ok(());
        }
        let mut arrived = Some(queue.complete()?);
        while let Some(completed) = arrived {
            let number = under_way.remove(completed.id).ok_or(Error::Unexpected("a completion of no command"))?;
            let operation = &operations[number];
            room_bytes -= room_of(operation);
            if completed.status.is_success() && room_of(operation) > 0 && completed.result > ROOM_BYTES as u64 {
                long.push(number);
            } else {
                outcomes[number] = Some(operation.outcome(completed));
            }
            arrived = queue.completed()?;
        }
    }
}

/// Reads a value that needs more room than it was given, however long it has become.
fn retrieve_long(queue: &mut Queue, operation: &Operation) -> Result<Outcome, Error> {
    let mut room_bytes = ROOM_BYTES;
    loop {
        let (kv, _) = operation.command()?;
        let Kv::Retrieve { key, .. } = kv else { return Err(Error::Unexpected("a value that was not asked for")) };
        let retrieve = Kv::Retrieve { key, room_bytes: room_bytes as u32 };
        let id = queue.submit(retrieve.command(0, NAMESPACE), &[], room_bytes);
        let completed = queue.complete_one(id)?;
        if room_bytes > ROOM_BYTES && completed.status.is(Status::INVALID_FIELD) {
            // More than a command of this device may have: others have stored it.
            return Ok(Outcome::Failed(Status::INVALID_VALUE_SIZE));
        }
        if !completed.status.is_success() || completed.result <= room_bytes as u64 {
            return Ok(operation.outcome(completed));
        }
        room_bytes = completed.result as usize;
    }
}

fn room_of(operation: &Operation) -> usize {
    if matches!(operation, Operation::Retrieve { .. }) { ROOM_BYTES } else { 0 }
}
