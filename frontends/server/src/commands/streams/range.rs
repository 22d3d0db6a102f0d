//! XRANGE and XREVRANGE.

use super::{arguments, replies};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![xrange, xrevrange];

fn xrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    range(call, false)
}

fn xrevrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    range(call, true)
}

fn range(call: &mut Call<'_>, is_reverse: bool) -> Result<(), Refusal> {
    let (start, end) = if is_reverse { (3, 2) } else { (2, 3) };
    let ids = arguments::interval(call.argument(start), call.argument(end))?;
    let (mut count, mut index) = (None, 4);
    while index < call.request.len() {
        if !call.argument(index).eq_ignore_ascii_case(b"count") || index + 1 == call.request.len() {
            return Err(Refusal::Syntax);
        }
        count = Some(call.integer(index + 1)?);
        index += 2;
    }
    let count_max = count.map_or(Some(0), |count| u64::try_from(count).ok().filter(|count| *count > 0));
    let Some(stream) = arguments::stream(call, 1)? else {
        call.reply.array(0);
        return Ok(());
    };
    let Some(count_max) = count_max else {
        call.reply.null_array();
        return Ok(());
    };
    let entries = replies::read(&mut Gathered::of(call), &stream, ids, count_max, is_reverse)?;
    replies::answer(call, &entries)
}
