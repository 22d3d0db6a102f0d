//! GET and MGET, executed one by one; usually the pipeline answers them in groups.

use std::borrow::Cow;

use resp::Reply;

use crate::errors::Refusal;
use crate::execution::call::{Call, Function, REPLY_BYTES_MAX};
use crate::telemetry::EventCounts;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![get, mget];

fn get(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, false)
}

fn mget(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, true)
}

/// Replies with copies of the values; refuses a reply that would be too long.
fn answer(call: &mut Call<'_>, is_array: bool) -> Result<(), Refusal> {
    let namespace = call.namespace();
    let keys: Vec<Cow<'_, [u8]>> = call.request.arguments().map(|key| namespace.raw(key)).collect();
    let (items, start) = (call.store(), call.reply.len_bytes());
    if is_array {
        call.reply.array(keys.len());
    }
    items.multi_get_with(&keys, |value| {
        if !call.is_reply_too_long(start) {
            answer_value(value, &mut call.reply, call.event_counts);
        }
    })?;
    match call.is_reply_too_long(start) {
        true => Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, accepts_limit: false }),
        false => Ok(()),
    }
}

/// Replies with a key's value, and counts a hit or miss.
#[inline]
pub(crate) fn answer_value(value: Option<&[u8]>, reply: &mut Reply<'_>, event_counts: &mut EventCounts) {
    match value {
        Some(value) => {
            event_counts.hits += 1;
            reply.bulk(value);
        }
        None => {
            event_counts.misses += 1;
            reply.null_bulk();
        }
    }
}
