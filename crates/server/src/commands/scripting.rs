//! SCRIPT, FUNCTION, MODULE and REPLICAOF, as far as their answer is that there is no such thing.

use crate::errors::{Refusal, Sentence};
use crate::execution::call::{Call, Function};

/// By the names of their rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("function|flush", function_flush),
    ("module|list", module_list),
    ("replicaof", replicaof),
    ("script|exists", script_exists),
    ("script|flush", script_flush),
];

fn function_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call, "FUNCTION FLUSH only supports SYNC|ASYNC option")
}

fn script_flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    flush(call, "SCRIPT FLUSH only support SYNC|ASYNC option")
}

fn flush(call: &mut Call<'_>, refusal: &str) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 3 || !call.request.arguments().skip(1).all(known) {
        return Err(Refusal::Names(refusal.into()));
    }
    call.ok();
    Ok(())
}

/// None does.
fn script_exists(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = call.request.len() - 2;
    call.reply.array(count);
    (0..count).for_each(|_| call.reply.integer(0));
    Ok(())
}

fn module_list(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(0);
    Ok(())
}

/// The server follows nobody, and stays so.
fn replicaof(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_nobody = call.argument(1).eq_ignore_ascii_case(b"no") && call.argument(2).eq_ignore_ascii_case(b"one");
    if !is_nobody {
        return Err(Sentence::NoReplication.into());
    }
    call.ok();
    Ok(())
}
