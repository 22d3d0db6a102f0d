//! CLIENT PAUSE, UNPAUSE and UNBLOCK: clients that wait.

use std::time::Duration;

use super::times;
use crate::errors::{Refusal, Sentence};
use crate::execution::call::{Call, Function};

/// By the names of their rows.
pub(super) const FUNCTIONS: &[(&str, Function)] =
    &[("client|pause", pause), ("client|unblock", unblock), ("client|unpause", unpause)];

/// Runs alone: once it has answered, nothing that it holds back is executed.
fn pause(call: &mut Call<'_>) -> Result<(), Refusal> {
    let holds_all = match call.request.arguments().nth(2) {
        None => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"all") => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"write") => false,
        Some(_) => return Err(Refusal::Names("CLIENT PAUSE mode must be WRITE or ALL".into())),
    };
    let length_ms = resp::parse_integer(call.argument(2)).ok_or(Sentence::TimeoutNotAnInteger)?;
    let length_ms = u64::try_from(length_ms).map_err(|_| Sentence::Timeout)?;
    // Its end must be a time of the clock.
    times::now_ms().checked_add_unsigned(length_ms).ok_or(Sentence::TimeoutRange)?;
    call.shared.pause.begin(Duration::from_millis(length_ms), holds_all);
    call.await_turns_if_away();
    wake_all(call);
    call.ok();
    Ok(())
}

fn unpause(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.shared.pause.end();
    wake_all(call);
    call.ok();
    Ok(())
}

/// Every loop looks when the clients that it has waiting may go on.
fn wake_all(call: &Call<'_>) {
    call.shared.post.wake_all();
}

/// No command waits for others: nobody is ever blocked.
fn unblock(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.integer(2)?;
    let how = call.request.arguments().nth(2);
    if how.is_some_and(|how| !how.eq_ignore_ascii_case(b"timeout") && !how.eq_ignore_ascii_case(b"error")) {
        return Err(Refusal::Names("CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()));
    }
    call.reply.integer(0);
    Ok(())
}
