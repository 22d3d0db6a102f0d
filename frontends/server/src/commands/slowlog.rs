//! SLOWLOG.

use crate::errors::Refusal;
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["slowlog|": [get, len, reset]];

/// As in Redis.
const COUNT_DEFAULT: i64 = 10;

fn get(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() > 3 {
        return Err(Refusal::subcommand_arguments("slowlog", call.argument(1)));
    }
    let count = if call.request.len() > 2 { resp::parse_integer(call.argument(2)) } else { Some(COUNT_DEFAULT) };
    let refused = || Refusal::Message("count should be greater than or equal to -1".into());
    let count = count.filter(|count| *count >= -1).ok_or_else(refused)?;
    let requests = call.shared.telemetry.slowlog.newest(usize::try_from(count).unwrap_or(usize::MAX));
    let reply = &mut call.reply;
    reply.array(requests.len());
    for request in &requests {
        reply.array(6);
        for number in [request.number as i64, request.unix_seconds as i64, request.took.as_micros() as i64] {
            reply.integer(number);
        }
        reply.array(request.arguments.len());
        request.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(request.addr.as_bytes());
        reply.bulk(&request.client_name);
    }
    Ok(())
}

fn len(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(call.shared.telemetry.slowlog.len() as i64);
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.shared.telemetry.slowlog.clear();
    call.ok();
    Ok(())
}
