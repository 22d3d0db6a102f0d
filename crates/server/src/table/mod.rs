//! The command table, one file per family: names, numbers of arguments, flags, keys, categories and policies.
//!
//! Dispatch, `COMMAND`, argument errors and ACL rules all use it. A row is data and refers to no function
//! (`commands::functions`).

pub(crate) mod arguments;
pub(crate) mod category;
mod command;
pub(crate) mod flag;

mod acl;
mod bits;
mod cluster;
mod connection;
mod cost;
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
mod touches;
mod transactions;

use std::sync::LazyLock;

use resp::Request;

pub(crate) use command::{Action, Command, ReadShape};
pub(crate) use cost::Cost;
pub(crate) use policy::Hides;
pub(crate) use touches::{Access, Channels, Keys, Places, Touches, is_open_end};

use crate::errors::Refusal;
use crate::telemetry::Kind;

/// A command with its index; subcommands have an index as well.
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

/// Returns all commands and subcommands by name. An entry's index is its position.
pub(crate) fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Returns all commands by name, without subcommands.
pub(crate) fn commands() -> impl Iterator<Item = &'static Command> {
    entries().iter().map(|entry| entry.command).filter(|command| !command.name.contains('|'))
}

/// Returns the command with this name, ignoring case; subcommands are named `command|subcommand`.
pub(crate) fn by_name(name: &[u8]) -> Option<Entry> {
    let lower = name.iter().map(u8::to_ascii_lowercase);
    let found = ENTRIES.binary_search_by(|entry| entry.command.name.bytes().cmp(lower.clone())).ok()?;
    Some(ENTRIES[found])
}

/// Returns the command or subcommand that a request names, if it accepts this number of arguments.
pub(crate) fn find(request: &Request<'_>) -> Result<Entry, Refusal> {
    let unknown = || Refusal::unknown_command(request);
    let mut entry = by_name(request.name()).filter(|_| !request.name().contains(&b'|')).ok_or_else(unknown)?;
    // A command with subcommands may also have a function of its own.
    if !entry.command.subcommands.is_empty() && request.len() > 1 {
        entry = subcommand_of(entry, request.argument(1))?;
    }
    if !entry.command.cost(request.len()) {
        return Err(Refusal::ArgumentCount { command: entry.command.name });
    }
    Ok(entry)
}

/// Returns the subcommand of `entry` with this name.
fn subcommand_of(entry: Entry, subcommand: &[u8]) -> Result<Entry, Refusal> {
    let name = [entry.command.name.as_bytes(), b"|", subcommand].concat();
    by_name(&name).ok_or_else(|| Refusal::unknown_subcommand(entry.command.name, subcommand))
}

impl Entry {
    /// Returns the kind under which it is counted.
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
