//! OBJECT: the answers that Redis would give about its representation of a value.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["object|": [encoding, freq, idletime, refcount]];

/// The longest value that Redis stores together with its header.
const EMBEDDED_BYTES_MAX: usize = 44;

/// Depends on the value only: all values are stored alike here.
pub(super) fn encoding_of(value: &[u8]) -> &'static str {
    match value {
        number if resp::parse_integer(number).is_some() => "int",
        short if short.len() <= EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

fn encoding(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.store().get_part_with(call.key(2), encoding_of)? {
        Some(name) => call.reply.bulk(name.as_bytes()),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

/// Redis shares one object for each of the numbers below 10,000, and shows that as the maximum count.
fn refcount(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_shared = call.store().get_part_with(call.key(2), |value| {
        resp::parse_integer(value).is_some_and(|number| (0..10_000).contains(&number))
    })?;
    reply_number(call, if is_shared == Some(true) { i32::MAX.into() } else { 1 })
}

/// The last use of a key is not recorded.
fn idletime(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_number(call, 0)
}

fn reply_number(call: &mut Call<'_>, number: i64) -> Result<(), Refusal> {
    match call.store().contains(call.key(2))? {
        true => call.reply.integer(number),
        false => call.reply.null_bulk(),
    }
    Ok(())
}

fn freq(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.store().contains(call.key(2))? {
        true => Err(FixedError::LfuOff.into()),
        false => {
            call.reply.null_bulk();
            Ok(())
        }
    }
}
