//! The commands: one file for each family, one table.
//!
//! A command's row says what `COMMAND` tells of it and what it does. Arguments are counted before it is called.

mod command;
mod connection;
mod info;
mod keyspace;
mod ordered;
mod scan;
mod strings;

use std::cmp::Ordering;

use resp::{Reply, Request};

use crate::connection::Session;
use crate::errors::Refusal;
use crate::shared::Shared;

/// All commands, by name.
static TABLE: &[&Command] = &[
    &command::COMMAND,
    &keyspace::DBSIZE,
    &keyspace::DEL,
    &connection::ECHO,
    &keyspace::EXISTS,
    &keyspace::FLUSHALL,
    &keyspace::FLUSHDB,
    &strings::GET,
    &connection::HELLO,
    &info::INFO,
    &strings::MGET,
    &connection::PING,
    &ordered::PREFIX,
    &connection::QUIT,
    &ordered::RANGE,
    &scan::SCAN,
    &connection::SELECT,
    &strings::SET,
];

/// A command as the table has it.
pub(crate) struct Command {
    /// In small letters.
    name: &'static str,
    /// The number of arguments, the name among them; if negative, the least number.
    arity: i64,
    flags: &'static [&'static str],
    keys: Keys,
    group: &'static str,
    summary: &'static str,
    complexity: &'static str,
    /// The version of Redis that has had it first; of hikv, if Redis has no such command.
    since: &'static str,
    pub(crate) action: Action,
}

/// Which arguments are keys: from `first` to `last` (from the end, if negative) in steps; all 0 if none.
struct Keys {
    first: i64,
    last: i64,
    step: i64,
}

impl Keys {
    const NONE: Keys = Keys { first: 0, last: 0, step: 0 };
    const ONE: Keys = Keys { first: 1, last: 1, step: 1 };
    const ALL: Keys = Keys { first: 1, last: -1, step: 1 };
}

/// Executes a request. It replies once, or refuses before it has replied.
pub(crate) type Apply = fn(&mut Call<'_>) -> Result<(), Refusal>;

/// How a command is executed.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// By a function.
    Apply(Apply),
    /// By replying with the values of its keys, together with those of neighbouring reads.
    Read(ReadShape),
}

/// How a read replies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadShape {
    /// With the value of its one key.
    Value,
    /// With an array of values.
    Array,
}

/// A request and all that its execution may touch.
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) request: Request<'a>,
    pub(crate) reply: Reply<'a>,
}

/// The command that a request names, if it may have so many arguments.
pub(crate) fn find(request: &Request<'_>) -> Result<&'static Command, Refusal> {
    let command = by_name(request.name()).ok_or_else(|| Refusal::unknown_command(request))?;
    if !command.takes(request.len()) {
        return Err(Refusal::ArgumentCount { command: command.name });
    }
    Ok(command)
}

fn by_name(name: &[u8]) -> Option<&'static Command> {
    let found = TABLE.binary_search_by(|command| compare(command.name, name)).ok()?;
    Some(TABLE[found])
}

/// Compares a name in small letters with one in any.
fn compare(name: &str, other: &[u8]) -> Ordering {
    name.bytes().cmp(other.iter().map(u8::to_ascii_lowercase))
}

impl Command {
    fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn names_are_found_in_any_case() {
        for command in TABLE {
            assert_eq!(by_name(command.name.to_uppercase().as_bytes()).map(|found| found.name), Some(command.name));
        }
        assert!(by_name(b"ge").is_none() && by_name(b"gett").is_none() && by_name(b"").is_none());
    }
}
