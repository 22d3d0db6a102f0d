//! DBSIZE, DEL, EXISTS, FLUSHALL, FLUSHDB.

use hikv::{Error, Store};

use super::{Action, Call, Command, Keys};
use crate::errors::Refusal;

pub(super) static DBSIZE: Command = Command {
    name: "dbsize",
    arity: 1,
    flags: &["readonly", "fast"],
    keys: Keys::NONE,
    group: "server",
    summary: "Return the number of keys in the selected database",
    complexity: "O(1)",
    since: "1.0.0",
    action: Action::Apply(dbsize),
};

pub(super) static DEL: Command = Command {
    name: "del",
    arity: -2,
    flags: &["write"],
    keys: Keys::ALL,
    group: "generic",
    summary: "Delete a key",
    complexity: "O(N) where N is the number of keys that will be removed",
    since: "1.0.0",
    action: Action::Apply(del),
};

pub(super) static EXISTS: Command = Command {
    name: "exists",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: Keys::ALL,
    group: "generic",
    summary: "Determine if a key exists",
    complexity: "O(N) where N is the number of keys to check",
    since: "1.0.0",
    action: Action::Apply(exists),
};

pub(super) static FLUSHALL: Command = Command {
    name: "flushall",
    arity: -1,
    flags: &["write"],
    keys: Keys::NONE,
    group: "server",
    summary: "Remove all keys from all databases",
    complexity: "O(N) where N is the total number of keys in all databases",
    since: "1.0.0",
    action: Action::Apply(flush),
};

pub(super) static FLUSHDB: Command = Command {
    name: "flushdb",
    arity: -1,
    flags: &["write"],
    keys: Keys::NONE,
    group: "server",
    summary: "Remove all keys from the current database",
    complexity: "O(N) where N is the number of keys in the selected database",
    since: "1.0.0",
    action: Action::Apply(flush),
};

fn dbsize(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = call.shared.store.len()?;
    call.reply.integer(count as i64);
    Ok(())
}

fn del(call: &mut Call<'_>) -> Result<(), Refusal> {
    count_keys(call, |store, key| store.delete(key))
}

fn exists(call: &mut Call<'_>) -> Result<(), Refusal> {
    count_keys(call, |store, key| store.contains(key))
}

/// Replies with the number of keys for which `holds`; a key that is named twice counts twice.
fn count_keys(call: &mut Call<'_>, holds: impl Fn(&Store, &[u8]) -> Result<bool, Error>) -> Result<(), Refusal> {
    let mut count = 0;
    for key in call.request.arguments() {
        count += i64::from(holds(&call.shared.store, key)?);
    }
    call.reply.integer(count);
    Ok(())
}

/// With one database, both commands mean the same. `ASYNC` and `SYNC` are taken, and make no difference either.
fn flush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let known = |option: &[u8]| option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync");
    if call.request.len() > 2 || !call.request.arguments().all(known) {
        return Err(Refusal::Syntax);
    }
    call.shared.store.clear()?;
    call.reply.simple("OK");
    Ok(())
}
