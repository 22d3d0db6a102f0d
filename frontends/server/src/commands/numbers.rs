//! INCR and its variants.

use hikv::Decision;

use crate::commands::decimal::Number;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::STRING;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![decr, decrby, incr, incrby, incrbyfloat];

fn incr(call: &mut Call<'_>) -> Result<(), Refusal> {
    add(call, 1)
}

fn decr(call: &mut Call<'_>) -> Result<(), Refusal> {
    add(call, -1)
}

fn incrby(call: &mut Call<'_>) -> Result<(), Refusal> {
    let by = call.integer(2)?;
    add(call, by)
}

fn decrby(call: &mut Call<'_>) -> Result<(), Refusal> {
    let by = call.integer(2)?.checked_neg().ok_or(FixedError::DecrementOverflow)?;
    add(call, by)
}

/// All four report the same event, as in Redis.
fn add(call: &mut Call<'_>, by: i64) -> Result<(), Refusal> {
    let sum = call.store().increment(call.key(1), by)?;
    call.changed(STRING, "incrby", 1);
    call.reply.integer(sum);
    Ok(())
}

fn incrbyfloat(call: &mut Call<'_>) -> Result<(), Refusal> {
    let by = Number::parse(call.argument(2)).ok_or(FixedError::NotAFloat)?;
    let mut outcome = Err(Refusal::from(FixedError::NotAFloat));
    call.store().update(call.key(1), |value| {
        let number = Number::parse(value.unwrap_or(b"0")).ok_or(FixedError::NotAFloat);
        outcome = number.and_then(|number| number.plus(by).ok_or(FixedError::NanOrInfinity)).map_err(Refusal::from);
        outcome.as_ref().map_or(Decision::Keep, |sum| Decision::Put(sum.to_string().into_bytes().into()))
    })?;
    let sum = outcome?.to_string();
    call.changed(STRING, "incrbyfloat", 1);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
