//! The table of the server's commands: names, numbers of arguments, flags, keys, categories, policies, documentation.
//!
//! Dispatch, `COMMAND`, argument errors and ACL rules all use it. A row is data and refers to no function. Rows are in
//! `rows`, one file per family.

pub mod arguments;
#[allow(missing_docs, reason = "the names are those of Redis")]
pub mod category;
mod command;
mod cost;
#[allow(missing_docs, reason = "the names are those of Redis")]
pub mod flag;
mod kind;
mod needs;
mod policy;
mod rows;
mod touches;

use std::sync::LazyLock;

use resp::Request;

pub use arguments::Argument;
pub use command::{Action, Command, Docs, Isolation, ReadShape};
pub use cost::Cost;
pub use kind::Kind;
pub use needs::Needs;
pub use policy::{Hides, Policy, When};
pub use touches::{Access, Channels, Keys, Places, Touches, is_open_end};

/// Why a request names no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// No command has this name.
    Command,
    /// The command has no such subcommand.
    Subcommand(&'static str),
    /// The command does not accept this number of arguments.
    ArgumentCount(&'static str),
}

/// A command with its index; subcommands have an index as well.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The row.
    pub command: &'static Command,
    /// The index.
    pub number: usize,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut commands: Vec<&Command> = Vec::new();
    for command in rows::all() {
        commands.push(command);
        commands.extend(command.subcommands);
    }
    commands.sort_unstable_by_key(|command| command.name);
    commands.into_iter().enumerate().map(|(number, command)| Entry { command, number }).collect()
});

/// Returns all commands and subcommands by name. An entry's index is its position.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Returns all commands by name, without subcommands.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    entries().iter().map(|entry| entry.command).filter(|command| !command.name.contains('|'))
}

/// Returns the command with this name, ignoring case; subcommands are named `command|subcommand`.
pub fn by_name(name: &[u8]) -> Option<Entry> {
    let lower = name.iter().map(u8::to_ascii_lowercase);
    let found = ENTRIES.binary_search_by(|entry| entry.command.name.bytes().cmp(lower.clone())).ok()?;
    Some(ENTRIES[found])
}

/// Returns the command or subcommand that a request names.
///
/// # Errors
/// If there is none, or if it does not accept this number of arguments.
pub fn find(request: &Request<'_>) -> Result<Entry, Unknown> {
    let mut entry = by_name(request.name()).filter(|_| !request.name().contains(&b'|')).ok_or(Unknown::Command)?;
    // A command with subcommands may also have a function of its own.
    if !entry.command.subcommands.is_empty() && request.len() > 1 {
        entry = subcommand_of(entry, request.argument(1)).ok_or(Unknown::Subcommand(entry.command.name))?;
    }
    if entry.command.accepts(request.len()) { Ok(entry) } else { Err(Unknown::ArgumentCount(entry.command.name)) }
}

/// Returns the subcommand of `entry` with this name.
fn subcommand_of(entry: Entry, subcommand: &[u8]) -> Option<Entry> {
    by_name(&[entry.command.name.as_bytes(), b"|", subcommand].concat())
}

impl Entry {
    /// Returns the kind under which it is counted.
    pub fn kind(self) -> Kind {
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
