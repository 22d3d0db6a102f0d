//! ECHO, HELLO, PING, QUIT, SELECT.

use resp::{Protocol, Reply};

use super::info::REDIS_VERSION;
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

pub(super) static HELLO: Command = Command {
    name: "hello",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    keys: Keys::NONE,
    group: "connection",
    summary: "Handshake with Redis",
    complexity: "O(1)",
    since: "6.0.0",
    action: Action::Apply(hello),
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

/// Chooses the protocol's version, if one is given, and tells of the server. There is nobody to authenticate and no
/// name to set, so neither option is taken.
fn hello(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() > 1 {
        let protocol = protocol_of(call.request.argument(1))?;
        if call.request.len() > 2 {
            return Err(Refusal::hello_option(call.request.argument(2)));
        }
        call.session.protocol = protocol;
        call.reply.switch_to(protocol);
    }
    greet(&mut call.reply, call.session.protocol, call.session.id);
    Ok(())
}

fn protocol_of(version: &[u8]) -> Result<Protocol, Refusal> {
    match resp::parse_integer(version) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(Refusal::NoProtocol),
        None => Err(Refusal::ProtocolNotAnInteger),
    }
}

fn greet(reply: &mut Reply<'_>, protocol: Protocol, client_id: u64) {
    let version = match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    reply.map(7);
    for (name, text) in [("server", "redis"), ("version", REDIS_VERSION), ("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", version), ("id", client_id as i64)] {
        reply.bulk(name.as_bytes());
        reply.integer(number);
    }
    reply.bulk(b"modules");
    reply.array(0);
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
