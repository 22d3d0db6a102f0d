//! HELLO: negotiates the protocol version, logs the client in, and describes the server.

use resp::Protocol;

use super::{client, connection};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![hello];

/// The Redis version whose replies are implemented; clients decide by it which commands to send.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

fn hello(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut protocol = call.session.protocol;
    let (mut name, mut user) = (None, None);
    if call.request.len() > 1 {
        protocol = protocol_of(call.argument(1))?;
        let mut arguments = call.request.arguments().skip(1);
        while let Some(option) = arguments.next() {
            let wrong = || Refusal::hello_option(option);
            match option.to_ascii_lowercase().as_slice() {
                b"auth" => user = Some((arguments.next().ok_or_else(wrong)?, arguments.next().ok_or_else(wrong)?)),
                b"setname" => name = Some(client::checked_name(arguments.next().ok_or_else(wrong)?)?),
                _ => return Err(wrong()),
            }
        }
    }
    if let Some((user, password)) = user {
        connection::log_in(call, user, password)?;
    }
    if call.session.login.user().is_none() {
        return Err(Refusal::HelloNoAuth);
    }
    if let Some(name) = name {
        call.session.record.names.lock().name = name.to_vec();
    }
    call.session.protocol = protocol;
    call.reply.switch_to(protocol);
    greet(call);
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

fn greet(call: &mut Call<'_>) {
    let version = match call.session.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    let (reply, id) = (&mut call.reply, call.session.id);
    reply.map(7);
    for (name, text) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", version), ("id", id as i64)] {
        reply.bulk(name.as_bytes());
        reply.integer(number);
    }
    for (name, text) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
