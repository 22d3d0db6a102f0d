//! GET and MGET, executed one by one; usually the pipeline answers them in groups.

use std::borrow::Cow;

use resp::Reply;

use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::telemetry::EventCounts;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[("get", get), ("mget", mget)];

fn get(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, false)
}

fn mget(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, true)
}

/// Replies with copies of the values.
fn answer(call: &mut Call<'_>, is_array: bool) -> Result<(), Refusal> {
    let namespace = call.namespace();
    let keys: Vec<Cow<'_, [u8]>> = call.request.arguments().map(|key| namespace.raw(key)).collect();
    let values = call.store().multi_get(&keys)?;
    if is_array {
        call.reply.array(values.len());
    }
    for value in values {
        answer_value(value.as_deref(), &mut call.reply, call.event_counts);
    }
    Ok(())
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
