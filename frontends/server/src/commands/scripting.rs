//! EVAL, EVALSHA and their read-only variants, and SCRIPT.
//!
//! A script has exclusive access, and its changes are written as one batch after its end, as those of EXEC: neither a
//! client nor a crash can see only some of them. A script that fails keeps what it has written before, as in Redis; one
//! that is killed or stopped writes nothing. In a transaction, its changes are among those of the transaction.

use std::rc::Rc;
use std::sync::Arc;

use lua_scripts::{Arguments, Failure, Hash, Outcome, Script, ScriptFlags, Stop, Watch};

use super::transactions::{UntilWritten, write};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::items::{Pending, WatchedKeys};
use crate::observers::announcements::Announcements;
use crate::scripts::{self, Kill, LoopWatch, Progress, ScriptHost, ScriptWatch};

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "": [eval, eval_ro, evalsha, evalsha_ro],
    "script|": ["debug" => script_debug, exists, flush, kill, load],
];

fn eval(call: &mut Call<'_>) -> Result<(), Refusal> {
    eval_text(call, false)
}

fn eval_ro(call: &mut Call<'_>) -> Result<(), Refusal> {
    eval_text(call, true)
}

fn evalsha(call: &mut Call<'_>) -> Result<(), Refusal> {
    eval_hash(call, false)
}

fn evalsha_ro(call: &mut Call<'_>) -> Result<(), Refusal> {
    eval_hash(call, true)
}

fn eval_text(call: &mut Call<'_>, is_read_only: bool) -> Result<(), Refusal> {
    let key_count = key_count(call)?;
    let script = loaded(call, call.argument(1), false)?;
    run(call, &script, key_count, is_read_only)
}

fn eval_hash(call: &mut Call<'_>, is_read_only: bool) -> Result<(), Refusal> {
    let key_count = key_count(call)?;
    let script = Hash::parse(call.argument(1)).and_then(|hash| call.shared.scripts.cache.get(&hash));
    let script = script.ok_or_else(|| Refusal::Script(Failure { text: NO_SCRIPT.into(), is_counted: false }))?;
    run(call, &script, key_count, is_read_only)
}

/// Parses the number of keys among the arguments.
fn key_count(call: &Call<'_>) -> Result<usize, Refusal> {
    let count = call.integer(2).map_err(|_| FixedError::NotANumber)?;
    if count < 0 {
        return Err(Refusal::Message("Number of keys can't be negative".into()));
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= call.request.len() - 3);
    count.ok_or_else(|| Refusal::Message("Number of keys can't be greater than number of args".into()))
}

/// Returns the script with this text, which can be compiled and is remembered.
fn loaded(call: &Call<'_>, text: &[u8], is_kept: bool) -> Result<Arc<Script>, Refusal> {
    let scripts = &call.shared.scripts;
    if let Some(script) = scripts.cache.get(&Hash::of(text)).filter(|_| !is_kept) {
        return Ok(script);
    }
    let script = Script::parse(text).map_err(Refusal::Message)?;
    scripts::prepare(scripts, &script)?;
    scripts.cache.add(script, is_kept)
}

/// Runs a script, and writes its changes unless it is part of a transaction.
fn run(call: &mut Call<'_>, script: &Script, key_count: usize, is_read_only: bool) -> Result<(), Refusal> {
    if is_read_only && !script.flags.is_plain && !script.flags.no_writes {
        return Err(Refusal::Message("Can not execute a script with write flag using *_ro command.".into()));
    }
    let ScriptFlags { is_plain, no_writes, allow_oom } = script.flags;
    if !is_plain && !no_writes && !allow_oom && call.client().is_out_of_memory() {
        return Err(FixedError::OutOfMemory.into());
    }
    let monitors = &call.shared.observers.monitors;
    if !monitors.is_empty() {
        // Before its commands, unlike other requests.
        monitors.show(&call.shared.mailboxes, call.entry, call.session, &call.request);
    }
    if let (Some(pending), Some(announcements)) = (call.pending, call.announcements) {
        return execute(call, (script, key_count, is_read_only), pending, announcements).map(drop);
    }
    let (pending, announcements) = (Pending::depending_on(WatchedKeys::default()), Announcements::default());
    let mut databases = UntilWritten::begin(call.shared);
    match execute(call, (script, key_count, is_read_only), &pending, &announcements) {
        Ok(false) => Ok(()),
        Err(refusal @ Refusal::Stopped(_)) => Err(refusal),
        ended => {
            databases.is_written = write(call, pending, announcements)?;
            ended.map(drop)
        }
    }
}

/// Executes a script with the changes so far, and writes its reply; returns false if it must be started again in the
/// background.
fn execute(
    call: &mut Call<'_>,
    (script, key_count, is_read_only): (&Script, usize, bool),
    pending: &Pending,
    announcements: &Announcements,
) -> Result<bool, Refusal> {
    let (shared, request, db) = (call.shared, call.request, call.session.db);
    let arguments: Vec<&[u8]> = request.arguments().skip(2).collect();
    let (keys, values) = arguments.split_at(key_count);
    let may_restart = call.session.may_use_background && !call.session.awaits_job;
    let progress = (!may_restart).then_some(&*shared.scripts.progress);
    let watch: Rc<dyn Watch> = if may_restart { LoopWatch::begin() } else { ScriptWatch::begin(shared) };
    let running = progress.map(Progress::begin);
    call.session.runs_script = true;
    let (mut text, protocol) = (Vec::new(), call.reply.protocol());
    let mut reply = resp::Reply::new(&mut text, protocol);
    let mut host = ScriptHost {
        call,
        pending,
        announcements,
        is_read_only: is_read_only || script.flags.no_writes,
        allows_oom: script.flags.allow_oom,
        may_restart,
        has_written: false,
        progress,
    };
    let outcome = scripts::run(&shared.scripts, script, Arguments { keys, values }, &mut host, watch, &mut reply);
    (call.session.runs_script, call.session.db) = (false, db);
    drop(running);
    match outcome? {
        Outcome::Replied => {
            call.reply.append(&text);
            Ok(true)
        }
        Outcome::Failed(failure) => Err(Refusal::Script(failure)),
        Outcome::Stopped(Stop::Killed, text) => Err(Refusal::Script(Failure { text, is_counted: false })),
        Outcome::Stopped(Stop::Abandoned, _) if may_restart => {
            call.session.needs_background = true;
            Ok(false)
        }
        Outcome::Stopped(Stop::Abandoned, text) => Err(Refusal::Stopped(text)),
    }
}

fn flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 3 || !call.request.arguments().skip(1).all(known) {
        return Err(Refusal::Message("SCRIPT FLUSH only support SYNC|ASYNC option".into()));
    }
    call.shared.scripts.cache.clear();
    call.ok();
    Ok(())
}

fn load(call: &mut Call<'_>) -> Result<(), Refusal> {
    let script = loaded(call, call.argument(2), true)?;
    call.reply.bulk(script.hash.as_bytes());
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(call.request.len() - 2);
    for digits in call.request.arguments().skip(1) {
        let is_loaded = Hash::parse(digits).is_some_and(|hash| call.shared.scripts.cache.get(&hash).is_some());
        call.reply.integer(is_loaded.into());
    }
    Ok(())
}

fn kill(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.shared.scripts.progress.kill() {
        Kill::Done => call.ok(),
        Kill::NotRunning => return Err(FixedError::NoScriptRuns.into()),
        Kill::TooLate => return Err(FixedError::Unkillable.into()),
    }
    Ok(())
}

/// Accepts only the mode in which scripts run anyway.
fn script_debug(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mode = call.argument(2);
    if mode.eq_ignore_ascii_case(b"no") {
        call.ok();
        return Ok(());
    }
    if mode.eq_ignore_ascii_case(b"yes") || mode.eq_ignore_ascii_case(b"sync") {
        return Err(Refusal::Message("the debugger of scripts is not supported".into()));
    }
    Err(Refusal::Message("Use SCRIPT DEBUG YES/SYNC/NO".into()))
}
