//! Concurrent operations on one queue.
//!
//! All completions that have arrived are processed before further commands are sent together: single commands would
//! cost both ends a system call each, and the device could not group them.

use nvme::{Kv, Status};

use crate::Error;
use crate::operation::{BUFFER_BYTES, NAMESPACE, Operation, Outcome};
use crate::queue::{Completed, Queue};

/// Maximum total buffer size of commands in flight. A device continues to read while its output is below this size, so
/// sending to a device never waits for the device's sending.
const BUFFER_BYTES_MAX: usize = 128 << 10;

/// Runs the operations that are not done, and reports the outcome of each; an error comes with the numbers of the
/// pending ones.
pub(crate) fn run_some<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    queue: &mut Queue,
    entry_count: u16,
    operations: &[Operation<K, V>],
    is_done: &mut [bool],
    on_result: &mut impl FnMut(usize, Outcome<&[u8]>),
) -> Result<(), (Error, Vec<usize>)> {
    let mut long = Vec::new();
    run_at_once(queue, entry_count, operations, (is_done, &mut long), on_result)
        .map_err(|error| (error, queue.pending_numbers().collect()))?;
    for number in long {
        let operation = &operations[number];
        let completed = retrieve_long(queue, operation).map_err(|error| (error, vec![number]))?;
        is_done[number] = true;
        on_result(
            number,
            completed
                .as_ref()
                .map_or_else(|status| Outcome::Failed(*status), |done| operation.outcome(&done.borrowed())),
        );
    }
    Ok(())
}

/// The same, except for values that exceed their buffer: these are recorded in `long`.
fn run_at_once<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    queue: &mut Queue,
    entry_count: u16,
    operations: &[Operation<K, V>],
    (is_done, long): (&mut [bool], &mut Vec<usize>),
    on_result: &mut impl FnMut(usize, Outcome<&[u8]>),
) -> Result<(), Error> {
    let count_max = usize::from(entry_count.saturating_sub(1).max(1));
    let (mut next, mut buffer_bytes, mut is_corrupt) = (0, 0, false);
    loop {
        while let Some(operation) = operations.get(next) {
            if !is_done[next] {
                let one_bytes = buffer_of(operation);
                if queue.pending_count() >= count_max || buffer_bytes + one_bytes > BUFFER_BYTES_MAX {
                    break;
                }
                let (kv, value) = operation.command()?;
                queue.submit_for(next, kv.command(0, NAMESPACE), value, one_bytes);
                buffer_bytes += one_bytes;
            }
            next += 1;
        }
        if queue.pending_count() == 0 {
            return Ok(());
        }
        let mut note = |completed: &Completed<&[u8]>| {
            let (number, operation) = (completed.number, &operations[completed.number]);
            let one_bytes = buffer_of(operation);
            buffer_bytes -= one_bytes;
            // It was not executed. A connection that corrupts data is abandoned for another one.
            if completed.status.is(Status::TRANSIENT_TRANSPORT_ERROR) {
                is_corrupt = true;
            } else if one_bytes > 0 && completed.status.is_success() && completed.result > BUFFER_BYTES as u64 {
                long.push(number);
            } else {
                is_done[number] = true;
                on_result(number, operation.outcome(completed));
            }
        };
        queue.complete_with(&mut note)?;
        while queue.completed_with(&mut note)?.is_some() {}
        if is_corrupt {
            return Err(Error::Unexpected("data was corrupted in transfer to the device"));
        }
    }
}

/// Reads a value that exceeds its first buffer, however long it has become; a status if it exceeds the maximum of a
/// command.
fn retrieve_long<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    queue: &mut Queue,
    operation: &Operation<K, V>,
) -> Result<Result<Completed, Status>, Error> {
    let mut buffer_bytes = BUFFER_BYTES;
    loop {
        let (kv, _) = operation.command()?;
        let Kv::Retrieve { key, .. } = kv else { return Err(Error::Unexpected("unrequested value")) };
        let retrieve = Kv::Retrieve { key, buffer_bytes: buffer_bytes as u32 };
        let id = queue.submit(retrieve.command(0, NAMESPACE), &[], buffer_bytes);
        let completed = queue.complete_one(id)?;
        if buffer_bytes > BUFFER_BYTES && completed.status.is(Status::INVALID_FIELD) {
            // Another user has stored it.
            return Ok(Err(Status::INVALID_VALUE_SIZE));
        }
        if !completed.status.is_success() || completed.result <= buffer_bytes as u64 {
            return Ok(Ok(completed));
        }
        buffer_bytes = completed.result as usize;
    }
}

fn buffer_of<K, V>(operation: &Operation<K, V>) -> usize {
    if matches!(operation, Operation::Retrieve { .. }) { BUFFER_BYTES } else { 0 }
}
