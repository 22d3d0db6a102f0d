//! LASTSAVE, LOLWUT, MONITOR, ROLE, SAVE, SHUTDOWN, TIME.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] =
    functions![bgrewriteaof, bgsave, lastsave, lolwut, monitor, role, save, shutdown, time,];

fn time(call: &mut Call<'_>) -> Result<(), Refusal> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.reply.array(2);
    call.reply.bulk(now.as_secs().to_string().as_bytes());
    call.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

fn role(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

fn lastsave(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.integer(call.shared.keyspace.saves.last_s() as i64);
    Ok(())
}

/// Runs as a background job, while the event loops continue.
fn save(call: &mut Call<'_>) -> Result<(), Refusal> {
    let change_count = call.shared.telemetry.change_count();
    call.shared.keyspace.saves.save(&call.shared.keyspace.store)?;
    call.shared.telemetry.figures.note_save(change_count);
    call.ok();
    Ok(())
}

/// No save ever waits for another job, so `SCHEDULE` has no effect.
fn bgsave(call: &mut Call<'_>) -> Result<(), Refusal> {
    if !call.request.arguments().all(|argument| argument.eq_ignore_ascii_case(b"schedule")) {
        return Err(Refusal::Syntax);
    }
    let change_count = call.shared.telemetry.change_count();
    call.shared.keyspace.saves.save_in_background(&call.shared.keyspace.store)?;
    call.shared.telemetry.figures.note_save(change_count);
    call.reply.simple("Background saving started");
    Ok(())
}

/// There is no such file; every write is in the store when it is answered.
fn bgrewriteaof(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.simple("Background append only file rewriting started");
    Ok(())
}

/// As in SSUBSCRIBE, the client receives more than one reply.
fn monitor(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.session.is_executing {
        return Err(FixedError::MonitorInExec.into());
    }
    if !std::mem::replace(&mut call.session.monitors, true) {
        call.shared.observers.monitors.add(call.session.record.place);
    }
    call.ok();
    Ok(())
}

/// Sends no reply on success: the connection ends.
fn shutdown(call: &mut Call<'_>) -> Result<(), Refusal> {
    let known: [&[u8]; 5] = [b"save", b"nosave", b"now", b"force", b"abort"];
    let has_option = |word: &[u8]| call.request.arguments().any(|option| option.eq_ignore_ascii_case(word));
    let is_known = |option: &[u8]| known.iter().any(|word| word.eq_ignore_ascii_case(option));
    let aborts = has_option(b"abort");
    let contradicts =
        has_option(b"save") && has_option(b"nosave") || aborts && known[..4].iter().any(|word| has_option(word));
    if contradicts || !call.request.arguments().all(is_known) {
        return Err(Refusal::Syntax);
    }
    if call.shared.scripts.is_busy() && !has_option(b"nosave") {
        return Err(FixedError::Busy.into());
    }
    if aborts {
        return Err(Refusal::Message("No shutdown in progress.".into()));
    }
    if has_option(b"save") {
        call.shared.keyspace.saves.save(&call.shared.keyspace.store)?;
    }
    call.session.closing = true;
    call.shared.stop.stop();
    Ok(())
}

fn lolwut(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.text(&format!(
        "hikv {}, compatible with Redis {}\n",
        env!("CARGO_PKG_VERSION"),
        super::hello::REDIS_VERSION
    ));
    Ok(())
}
