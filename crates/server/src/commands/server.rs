//! LASTSAVE, LOLWUT, MONITOR, ROLE, SAVE, SHUTDOWN, TIME.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::call::Call;
use crate::errors::Refusal;

pub(crate) fn time(call: &mut Call<'_>) -> Result<(), Refusal> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.reply.array(2);
    call.reply.bulk(now.as_secs().to_string().as_bytes());
    call.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

pub(crate) fn role(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// The present: every write is in the store when it is answered.
pub(crate) fn lastsave(call: &mut Call<'_>) -> Result<(), Refusal> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.reply.integer(now.as_secs() as i64);
    Ok(())
}

/// There is nothing left to be saved: every write is in the store when it is answered. No copy is made.
pub(crate) fn save(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.ok();
    Ok(())
}

pub(crate) fn bgsave(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.simple("Background saving started");
    Ok(())
}

pub(crate) fn bgrewriteaof(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.simple("Background append only file rewriting started");
    Ok(())
}

pub(crate) fn monitor(call: &mut Call<'_>) -> Result<(), Refusal> {
    if !std::mem::replace(&mut call.session.monitors, true) {
        call.shared.monitors.add(call.session.record.place);
    }
    call.ok();
    Ok(())
}

/// Answers nothing where it succeeds: the connection ends.
pub(crate) fn shutdown(call: &mut Call<'_>) -> Result<(), Refusal> {
    for option in call.request.arguments() {
        match option.to_ascii_lowercase().as_slice() {
            b"nosave" | b"save" | b"now" | b"force" => {}
            b"abort" => return Err(Refusal::Names("No shutdown in progress.".into())),
            _ => return Err(Refusal::Syntax),
        }
    }
    call.session.closing = true;
    call.shared.stop.stop();
    Ok(())
}

pub(crate) fn lolwut(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.text(&format!(
        "hikv {}, which speaks as Redis {} does\n",
        env!("CARGO_PKG_VERSION"),
        super::hello::REDIS_VERSION
    ));
    Ok(())
}
