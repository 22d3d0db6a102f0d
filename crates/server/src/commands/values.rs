//! GET and MGET, each executed by itself; usually the pipeline answers them together with neighbours.

use std::borrow::Cow;

use resp::Reply;

use crate::errors::Refusal;
use crate::execution::call::{Call, Function, REPLY_BYTES_MAX};
use crate::telemetry::Tally;

/// By the names of their rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[("get", get), ("mget", mget)];

fn get(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, false)
}

fn mget(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, true)
}

/// Replies with copies of the values, as long as the reply is no longer than one may be.
fn answer(call: &mut Call<'_>, is_array: bool) -> Result<(), Refusal> {
    let namespace = call.namespace();
    let keys: Vec<Cow<'_, [u8]>> = call.request.arguments().map(|key| namespace.raw(key)).collect();
    let (items, start) = (call.store(), call.reply.len_bytes());
    if is_array {
        call.reply.array(keys.len());
    }
    items.multi_get_with(&keys, |value| {
        if !call.is_reply_too_long(start) {
            answer_value(value, &mut call.reply, call.tally);
        }
    })?;
    match call.is_reply_too_long(start) {
        true => Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, takes_limit: false }),
        false => Ok(()),
    }
}

/// Answers with what a key holds, and counts whether it was there.
#[inline]
pub(crate) fn answer_value(value: Option<&[u8]>, reply: &mut Reply<'_>, tally: &mut Tally) {
    match value {
        Some(value) => {
            tally.hits += 1;
            reply.bulk(value);
        }
        None => {
            tally.misses += 1;
            reply.null_bulk();
        }
    }
}
