//! AUTH, ECHO, PING, QUIT, RESET, SELECT.

use resp::Protocol;

use super::moving::database_of;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use acl::{DEFAULT_USER, Reason};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![auth, echo, ping, quit, reset, select];

fn auth(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.request.len() {
        2 => {
            let default = call.shared.administration.acl.user(DEFAULT_USER);
            if default.is_some_and(|user| user.needs_no_password) {
                return Err(FixedError::NoPassword.into());
            }
            log_in(call, DEFAULT_USER.as_bytes(), call.argument(1))?;
        }
        3 => log_in(call, call.argument(1), call.argument(2))?,
        _ => return Err(Refusal::Syntax),
    }
    call.ok();
    Ok(())
}

/// Logs the client in, if the password is right.
pub(super) fn log_in(call: &mut Call<'_>, name: &[u8], password: &[u8]) -> Result<(), Refusal> {
    match call.shared.administration.acl.authenticate(name, password) {
        Some(login) => {
            call.session.log_in(login);
            Ok(())
        }
        None => {
            let shared = call.shared;
            shared.administration.log.auth_failed(
                "redis",
                &call.session.record.addr,
                shared.administration.acl.known(name),
            );
            let name = String::from_utf8_lossy(name).into_owned();
            call.client().log_denied(Reason::Auth, b"AUTH".into(), name);
            Err(FixedError::WrongPass.into())
        }
    }
}

fn echo(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(call.argument(1));
    Ok(())
}

/// A subscribed RESP2 client gets a message, because it cannot distinguish other replies from messages.
fn ping(call: &mut Call<'_>) -> Result<(), Refusal> {
    let text = match call.request.len() {
        1 => None,
        2 => Some(call.argument(1)),
        _ => return Err(Refusal::ArgumentCount { command: "ping" }),
    };
    if call.session.subscriptions.count() > 0 && call.session.protocol == Protocol::Resp2 {
        call.reply.array(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(text.unwrap_or_default());
    } else {
        match text {
            Some(text) => call.reply.bulk(text),
            None => call.reply.simple("PONG"),
        }
    }
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.closing = true;
    call.ok();
    Ok(())
}

fn reset(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.shared.reset(call.session);
    call.session.log_in(call.shared.administration.acl.initial_login());
    call.reply.switch_to(Protocol::Resp2);
    call.reply.simple("RESET");
    Ok(())
}

fn select(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.db = database_of(call.argument(1))?;
    call.ok();
    Ok(())
}
