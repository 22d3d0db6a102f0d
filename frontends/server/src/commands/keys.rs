//! Entire keys: DEL, EXISTS, TYPE, WAIT.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::GENERIC;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    del, exists, "touch" => exists, "type" => type_of, "unlink" => del, wait,
];

fn del(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    for index in 1..call.request.len() {
        if call.delete(index)? {
            count += 1;
            call.changed(GENERIC, "del", index);
        }
    }
    call.reply.integer(count);
    Ok(())
}

/// A key that is named twice counts twice.
fn exists(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    for index in 1..call.request.len() {
        count += i64::from(call.contains(index)?);
    }
    call.event_counts.hits += count as u64;
    call.event_counts.misses += call.request.len() as u64 - 1 - count as u64;
    call.reply.integer(count);
    Ok(())
}

fn type_of(call: &mut Call<'_>) -> Result<(), Refusal> {
    let name = match call.store().contains(call.key(1))? {
        true => "string",
        false => call.found(1)?.map_or("none", |found| found.collection_type().name()),
    };
    call.reply.simple(name);
    Ok(())
}

/// There are no replicas to wait for.
fn wait(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.integer(1)?;
    if resp::parse_integer(call.argument(2)).ok_or(FixedError::TimeoutNotAnInteger)? < 0 {
        return Err(FixedError::Timeout.into());
    }
    call.reply.integer(0);
    Ok(())
}
