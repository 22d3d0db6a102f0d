//! GET, MGET, SET.

use super::{Action, Call, Command, Keys, ReadShape};
use crate::errors::Refusal;

pub(super) static GET: Command = Command {
    name: "get",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: Keys::ONE,
    group: "string",
    summary: "Get the value of a key",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Read(ReadShape::Value),
};

pub(super) static MGET: Command = Command {
    name: "mget",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: Keys::ALL,
    group: "string",
    summary: "Get the values of all the given keys",
    complexity: "O(N) where N is the number of keys to retrieve",
    since: "1.0.0",
    action: Action::Read(ReadShape::Array),
};

pub(super) static SET: Command = Command {
    name: "set",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: Keys::ONE,
    group: "string",
    summary: "Set the string value of a key",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(set),
};

/// Options of Redis' SET; to ignore one would lose its meaning.
const SET_OPTIONS: [&str; 8] = ["NX", "XX", "GET", "EX", "PX", "EXAT", "PXAT", "KEEPTTL"];

fn set(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() > 3 {
        return Err(option_refused(call.request.argument(3)));
    }
    call.shared.store.put(call.request.argument(1), call.request.argument(2))?;
    call.reply.simple("OK");
    Ok(())
}

fn option_refused(option: &[u8]) -> Refusal {
    match SET_OPTIONS.iter().find(|known| known.as_bytes().eq_ignore_ascii_case(option)) {
        Some(option) => Refusal::Unsupported { command: "SET", option },
        None => Refusal::Syntax,
    }
}
