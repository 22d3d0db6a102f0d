//! The table of commands, a file for each family: names, numbers of arguments, flags, keys, categories and policies.
//! Dispatch, `COMMAND`, the errors about arguments and the rules of ACLs all come from here. A row is data: it knows no function
//! (`commands::functions`).

pub(crate) mod arguments;
pub(crate) mod category;
mod command;
pub(crate) mod flag;

mod acl;
mod bits;
mod cluster;
mod connection;
mod diagnostics;
mod keys;
mod needs;
mod ordered;
mod policy;
mod pubsub;
mod scripting;
mod server;
mod strings;
mod syntax;
mod takes;
mod touches;
mod transactions;

use std::cmp::Ordering;
use std::sync::LazyLock;

use resp::Request;

pub(crate) use command::{Action, Command, ReadShape};
pub(crate) use policy::Hides;
pub(crate) use takes::Takes;
pub(crate) use touches::{Access, Channels, Keys, Places, Touches, is_open_end};

use crate::errors::Refusal;
use crate::telemetry::Kind;

/// A command and its number; subcommands are numbered as well.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) command: &'static Command,
    pub(crate) number: usize,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut commands: Vec<&Command> = Vec::new();
    let families = [
        acl::ROWS,
        bits::ROWS,
        cluster::ROWS,
        connection::ROWS,
        diagnostics::ROWS,
        keys::ROWS,
        ordered::ROWS,
        pubsub::ROWS,
        scripting::ROWS,
        server::ROWS,
        strings::ROWS,
        transactions::ROWS,
    ];
    for command in families.into_iter().flatten() {
        commands.push(command);
        commands.extend(command.subcommands);
    }
    commands.sort_unstable_by_key(|command| command.name);
    commands.into_iter().enumerate().map(|(number, command)| Entry { command, number }).collect()
});

/// Every command and subcommand, by name. Their numbers are their places.
pub(crate) fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Every command, by name, without subcommands.
pub(crate) fn commands() -> impl Iterator<Item = &'static Command> {
    entries().iter().map(|entry| entry.command).filter(|command| !command.name.contains('|'))
}

/// The command of this name, in any case; a subcommand is named as `command|subcommand`.
pub(crate) fn by_name(name: &[u8]) -> Option<Entry> {
    let found = ENTRIES.binary_search_by(|entry| compare(entry.command.name, name)).ok()?;
    Some(ENTRIES[found])
}

/// The command or subcommand that a request names, if it may have so many arguments.
pub(crate) fn find(request: &Request<'_>) -> Result<Entry, Refusal> {
    let unknown = || Refusal::unknown_command(request);
    let entry = by_name(request.name()).filter(|_| !request.name().contains(&b'|')).ok_or_else(unknown)?;
    let entry = subcommand_of(entry, request)?;
    if !entry.command.takes(request.len()) {
        return Err(Refusal::ArgumentCount { command: entry.command.name });
    }
    Ok(entry)
}

/// A command that has subcommands may also do something of its own when none is named.
fn subcommand_of(entry: Entry, request: &Request<'_>) -> Result<Entry, Refusal> {
    if entry.command.subcommands.is_empty() || request.len() < 2 {
        return Ok(entry);
    }
    let name = [entry.command.name.as_bytes(), b"|", request.argument(1)].concat();
    by_name(&name).ok_or_else(|| Refusal::unknown_subcommand(entry.command.name, request.argument(1)))
}

/// Compares a name in small letters with one in any.
fn compare(name: &str, other: &[u8]) -> Ordering {
    name.bytes().cmp(other.iter().map(u8::to_ascii_lowercase))
}

impl Entry {
    /// Beside which others it is counted.
    pub(crate) fn kind(self) -> Kind {
        self.command.policy.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for (number, entry) in entries().iter().enumerate() {
            let found = by_name(entry.command.name.to_uppercase().as_bytes()).expect("a known name");
            assert_eq!((found.number, found.command.name), (number, entry.command.name));
        }
        assert!(by_name(b"ge").is_none() && by_name(b"gett").is_none() && by_name(b"").is_none());
    }

    #[test]
    fn command_names_are_unique() {
        assert!(entries().is_sorted_by(|a, b| a.command.name < b.command.name));
        for command in commands() {
            assert!(!matches!(command.action, Action::Subcommands) || !command.subcommands.is_empty());
            for subcommand in command.subcommands {
                assert_eq!(subcommand.name.split_once('|').map(|(name, _)| name), Some(command.name));
            }
        }
    }
}
