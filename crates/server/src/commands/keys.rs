//! Keys as a whole: DEL, EXISTS, TYPE, WAIT.

use crate::call::Call;
use crate::errors::{Refusal, Sentence};
use crate::notify::GENERIC;

pub(crate) fn del(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    for index in 1..call.request.len() {
        if call.store().delete(call.key(index))? {
            count += 1;
            call.changed(GENERIC, "del", index);
        }
    }
    call.reply.integer(count);
    Ok(())
}

/// A key that is named twice counts twice.
pub(crate) fn exists(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    for index in 1..call.request.len() {
        count += i64::from(call.store().contains(call.key(index))?);
    }
    call.tally.hits += count as u64;
    call.tally.misses += call.request.len() as u64 - 1 - count as u64;
    call.reply.integer(count);
    Ok(())
}

pub(crate) fn type_of(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_there = call.store().contains(call.key(1))?;
    call.reply.simple(if is_there { "string" } else { "none" });
    Ok(())
}

/// There are no replicas to wait for.
pub(crate) fn wait(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.integer(1)?;
    if resp::parse_integer(call.argument(2)).ok_or(Sentence::TimeoutNotAnInteger)? < 0 {
        return Err(Sentence::Timeout.into());
    }
    call.reply.integer(0);
    Ok(())
}
