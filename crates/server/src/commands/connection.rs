//! ECHO, PING, QUIT, SELECT.

use super::{Action, Call, Command, Keys};
use crate::errors::Refusal;

pub(super) static ECHO: Command = Command {
    name: "echo",
    arity: 2,
    flags: &["loading", "stale", "fast"],
    keys: Keys::NONE,
    group: "connection",
    summary: "Echo the given string",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(echo),
};

pub(super) static PING: Command = Command {
    name: "ping",
    arity: -1,
    flags: &["fast"],
    keys: Keys::NONE,
    group: "connection",
    summary: "Ping the server",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(ping),
};

pub(super) static QUIT: Command = Command {
    name: "quit",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    keys: Keys::NONE,
    group: "connection",
    summary: "Close the connection",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(quit),
};

pub(super) static SELECT: Command = Command {
    name: "select",
    arity: 2,
    flags: &["loading", "stale", "fast"],
    keys: Keys::NONE,
    group: "connection",
    summary: "Change the selected database for the current connection",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(select),
};

fn echo(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(call.request.argument(1));
    Ok(())
}

fn ping(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.request.len() {
        1 => call.reply.simple("PONG"),
        2 => call.reply.bulk(call.request.argument(1)),
        _ => return Err(Refusal::ArgumentCount { command: "ping" }),
    }
    Ok(())
}

fn quit(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.session.closing = true;
    call.reply.simple("OK");
    Ok(())
}

/// There is one database, number 0.
fn select(call: &mut Call<'_>) -> Result<(), Refusal> {
    match resp::parse_integer(call.request.argument(1)) {
        Some(0) => call.reply.simple("OK"),
        Some(_) => return Err(Refusal::DbIndex),
        None => return Err(Refusal::NotAnInteger),
    }
    Ok(())
}
