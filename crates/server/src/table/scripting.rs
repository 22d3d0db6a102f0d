//! FUNCTION and SCRIPT: the replies of a server without scripts.

use super::category;
use super::command::{Action, Command};
use super::cost::Cost::Moment;
use super::flag::{ALLOW_BUSY, DENYOOM, LOADING, NOSCRIPT, STALE, WRITE};
use super::needs::Needs::Any;
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::Touches::Nothing;
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new("function", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(FUNCTION_SUBCOMMANDS)
        .documented("scripting", "7.0.0", "A container for function commands", "Depends on subcommand."),
    Command::new("script", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(SCRIPT_SUBCOMMANDS)
        .documented("scripting", "2.6.0", "A container for Lua scripts management commands", "Depends on subcommand."),
];

const fn subcommand(name: &'static str, arity: i64, flags: u32) -> Command {
    Command::new(name, arity, flags, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .in_categories(category::SCRIPTING)
}

static FUNCTION_SUBCOMMANDS: &[Command] = &[
    subcommand("function|delete", 3, NOSCRIPT | WRITE).documented(
        "scripting",
        "7.0.0",
        "Delete a function by name",
        "O(1)",
    ),
    subcommand("function|dump", 2, NOSCRIPT).documented(
        "scripting",
        "7.0.0",
        "Dump all functions into a serialized binary payload",
        "O(1)",
    ),
    subcommand("function|flush", -2, NOSCRIPT | WRITE).documented(
        "scripting",
        "7.0.0",
        "Deleting all functions",
        "O(1)",
    ),
    subcommand("function|help", 2, LOADING | STALE).documented(
        "scripting",
        "7.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    subcommand("function|kill", 2, NOSCRIPT | ALLOW_BUSY).documented(
        "scripting",
        "7.0.0",
        "Kill the function currently in execution.",
        "O(1)",
    ),
    subcommand("function|list", -2, NOSCRIPT).documented(
        "scripting",
        "7.0.0",
        "List information about all the functions",
        "O(1)",
    ),
    subcommand("function|load", -3, NOSCRIPT | WRITE | DENYOOM).documented(
        "scripting",
        "7.0.0",
        "Create a function with the given arguments (name, code, description)",
        "O(1)",
    ),
    subcommand("function|restore", -3, NOSCRIPT | WRITE | DENYOOM).documented(
        "scripting",
        "7.0.0",
        "Restore all the functions on the given payload",
        "O(1)",
    ),
    subcommand("function|stats", 2, NOSCRIPT | ALLOW_BUSY).documented(
        "scripting",
        "7.0.0",
        "Return information about the function currently running (name, description, duration)",
        "O(1)",
    ),
];

static SCRIPT_SUBCOMMANDS: &[Command] = &[
    subcommand("script|debug", 3, NOSCRIPT).documented(
        "scripting",
        "3.2.0",
        "Set the debug mode for executed scripts.",
        "O(1)",
    ),
    subcommand("script|exists", -3, NOSCRIPT).documented(
        "scripting",
        "2.6.0",
        "Check existence of scripts in the script cache.",
        "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
    ),
    subcommand("script|flush", -2, NOSCRIPT).documented(
        "scripting",
        "2.6.0",
        "Remove all the scripts from the script cache.",
        "O(N) with N being the number of scripts in cache",
    ),
    subcommand("script|help", 2, LOADING | STALE).documented(
        "scripting",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    subcommand("script|kill", 2, NOSCRIPT | ALLOW_BUSY).documented(
        "scripting",
        "2.6.0",
        "Kill the script currently in execution.",
        "O(1)",
    ),
    subcommand("script|load", 3, NOSCRIPT | STALE).documented(
        "scripting",
        "2.6.0",
        "Load the specified Lua script into the script cache.",
        "O(N) with N being the length in bytes of the script body.",
    ),
];
