//! CLIENT PAUSE, UNPAUSE and UNBLOCK.

use std::time::Duration;

use super::times;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["client|": [pause, unblock, unpause]];

/// Has exclusive access: after its reply, no command that the pause holds is executed.
fn pause(call: &mut Call<'_>) -> Result<(), Refusal> {
    let holds_all = match call.request.arguments().nth(2) {
        None => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"all") => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"write") => false,
        Some(_) => return Err(Refusal::Message("CLIENT PAUSE mode must be WRITE or ALL".into())),
    };
    let length_ms = resp::parse_integer(call.argument(2)).ok_or(FixedError::TimeoutNotAnInteger)?;
    let length_ms = u64::try_from(length_ms).map_err(|_| FixedError::Timeout)?;
    // The end must be representable.
    times::now_ms().checked_add_unsigned(length_ms).ok_or(FixedError::TimeoutRange)?;
    call.shared.pause.begin(Duration::from_millis(length_ms), holds_all);
    call.await_turns_if_background();
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

/// Wakes every loop to check which of its waiting clients may proceed.
fn wake_all(call: &Call<'_>) {
    call.shared.mailboxes.wake_all();
}

fn unblock(call: &mut Call<'_>) -> Result<(), Refusal> {
    let how = call.request.arguments().nth(2);
    if how.is_some_and(|how| !how.eq_ignore_ascii_case(b"timeout") && !how.eq_ignore_ascii_case(b"error")) {
        return Err(Refusal::Message("CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()));
    }
    let client_id = call.integer(2)?.try_into().unwrap_or(0);
    let with_error = how.is_some_and(|how| how.eq_ignore_ascii_case(b"error"));
    let is_ended = call.shared.unblock(client_id, with_error);
    call.reply.integer(is_ended.into());
    Ok(())
}
