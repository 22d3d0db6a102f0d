//! SCRIPT, FUNCTION, MODULE and REPLICAOF, limited to the replies of a server without scripts, modules and replication.

use super::rdb;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "function|": [
        "delete" => function_delete, "dump" => function_dump, "flush" => function_flush, kill,
        "list" => function_list, load, "restore" => load, "stats" => function_stats,
    ],
    "module|": ["list" => module_list],
    "": [replicaof],
    "script|": ["debug" => script_debug, "exists" => script_exists, "flush" => script_flush, kill, load],
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
        return Err(Refusal::Message(refusal.into()));
    }
    call.ok();
    Ok(())
}

/// Nothing can be loaded, so no client ever has a script to run.
fn load(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoScripts.into())
}

fn kill(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoScriptRuns.into())
}

fn function_delete(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoLibrary.into())
}

/// An empty set of libraries, in Redis' format.
fn function_dump(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(&rdb::sealed(Vec::new()));
    Ok(())
}

fn function_list(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (mut has_pattern, mut has_code) = (false, false);
    let mut arguments = call.request.arguments().skip(1);
    while let Some(option) = arguments.next() {
        if !has_code && option.eq_ignore_ascii_case(b"withcode") {
            has_code = true;
        } else if !has_pattern && option.eq_ignore_ascii_case(b"libraryname") {
            has_pattern = true;
            arguments.next().ok_or_else(|| Refusal::Message("library name argument was not given".into()))?;
        } else {
            return Err(Refusal::Message(format!("Unknown argument {}", String::from_utf8_lossy(option))));
        }
    }
    call.reply.array(0);
    Ok(())
}

/// There is no engine either.
fn function_stats(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.map(2);
    call.reply.bulk(b"running_script");
    call.reply.null_bulk();
    call.reply.bulk(b"engines");
    call.reply.map(0);
    Ok(())
}

/// Accepts only the mode in which scripts would run anyway.
fn script_debug(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mode = call.argument(2);
    if mode.eq_ignore_ascii_case(b"no") {
        call.ok();
        return Ok(());
    }
    if mode.eq_ignore_ascii_case(b"yes") || mode.eq_ignore_ascii_case(b"sync") {
        return Err(FixedError::NoScripts.into());
    }
    Err(Refusal::Message("Use SCRIPT DEBUG YES/SYNC/NO".into()))
}

/// None exists.
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

/// The server never follows another one.
fn replicaof(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_no_one = call.argument(1).eq_ignore_ascii_case(b"no") && call.argument(2).eq_ignore_ascii_case(b"one");
    if !is_no_one {
        return Err(FixedError::NoReplication.into());
    }
    call.ok();
    Ok(())
}
