//! FUNCTION, MODULE and REPLICAOF, limited to the replies of a server without functions, modules and replication.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "function|": [delete, dump, flush, kill, list, load, "restore" => load, stats],
    "module|": ["list" => module_list],
    "": [replicaof],
];

fn flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 3 || !call.request.arguments().skip(1).all(known) {
        return Err(Refusal::Message("FUNCTION FLUSH only supports SYNC|ASYNC option".into()));
    }
    call.ok();
    Ok(())
}

/// Nothing can be loaded, so no client ever has a function to run.
fn load(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoFunctions.into())
}

fn kill(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoScriptRuns.into())
}

fn delete(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoLibrary.into())
}

/// An empty set of libraries, in Redis' format.
fn dump(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(&rdb::sealed(Vec::new()));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Result<(), Refusal> {
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
fn stats(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.map(2);
    call.reply.bulk(b"running_script");
    call.reply.null_bulk();
    call.reply.bulk(b"engines");
    call.reply.map(0);
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
