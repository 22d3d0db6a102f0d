//! Scripts, and the replies of a server without functions.

use crate::category;
use crate::command::Command;
use crate::flag::{
    ALLOW_BUSY, DENYOOM, LOADING, MOVABLE_KEYS, NO_MANDATORY_KEYS, NOSCRIPT, READONLY, SCRIPT, SKIP_MONITOR, STALE,
    WRITE,
};
use crate::kind::Kind;
use crate::policy::{SERVER, on};
use crate::touches::{Access, counted_keys};

const EVAL_FLAGS: u32 = NOSCRIPT | STALE | SKIP_MONITOR | NO_MANDATORY_KEYS | MOVABLE_KEYS | SCRIPT;

/// Creates the row of a command that runs a script.
const fn script(name: &'static str, flags: u32, access: Access, syntax: &'static str) -> Command {
    Command::new(name, -3, EVAL_FLAGS | flags, on(Kind::Transaction, counted_keys(access)))
        .in_categories(category::SCRIPTING)
        .alone()
        .syntax(syntax)
}

const TEXT: &str = "<script> <numkeys:integer> [<key:key>...] [<arg>...]";
const HASH: &str = "<sha1> <numkeys:integer> [<key:key>...] [<arg>...]";
const COMPLEXITY: &str = "Depends on the script that is executed.";

pub(super) static ROWS: &[Command] = &[
    script("eval", 0, Access::ReadAndUpdate, TEXT).documented(
        "scripting",
        "2.6.0",
        "Execute a Lua script server side",
        COMPLEXITY,
    ),
    script("eval_ro", READONLY, Access::Read, TEXT).documented(
        "scripting",
        "7.0.0",
        "Execute a read-only Lua script server side",
        COMPLEXITY,
    ),
    script("evalsha", 0, Access::ReadAndUpdate, HASH).documented(
        "scripting",
        "2.6.0",
        "Execute a Lua script server side",
        COMPLEXITY,
    ),
    script("evalsha_ro", READONLY, Access::Read, HASH).documented(
        "scripting",
        "7.0.0",
        "Execute a read-only Lua script server side",
        COMPLEXITY,
    ),
    Command::new("function", -2, 0, SERVER).containing(FUNCTION_SUBCOMMANDS).documented(
        "scripting",
        "7.0.0",
        "A container for function commands",
        "Depends on subcommand.",
    ),
    Command::new("script", -2, 0, SERVER).containing(SCRIPT_SUBCOMMANDS).documented(
        "scripting",
        "2.6.0",
        "A container for Lua scripts management commands",
        "Depends on subcommand.",
    ),
];

static FUNCTION_SUBCOMMANDS: &[Command] = &[
    Command::new("function|delete", 3, NOSCRIPT | WRITE, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("<library-name>")
        .documented("scripting", "7.0.0", "Delete a function by name", "O(1)"),
    Command::new("function|dump", 2, NOSCRIPT, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "7.0.0",
        "Dump all functions into a serialized binary payload",
        "O(1)",
    ),
    Command::new("function|flush", -2, NOSCRIPT | WRITE, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("[async(ASYNC|SYNC)]")
        .documented("scripting", "7.0.0", "Deleting all functions", "O(1)"),
    Command::new("function|help", 2, LOADING | STALE, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "7.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("function|kill", 2, NOSCRIPT | ALLOW_BUSY, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "7.0.0",
        "Kill the function currently in execution.",
        "O(1)",
    ),
    Command::new("function|list", -2, NOSCRIPT, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("[LIBRARYNAME <library-name-pattern>] [WITHCODE]")
        .documented("scripting", "7.0.0", "List information about all the functions", "O(1)"),
    Command::new("function|load", -3, NOSCRIPT | WRITE | DENYOOM, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("[REPLACE] <function-code>")
        .documented(
            "scripting",
            "7.0.0",
            "Create a function with the given arguments (name, code, description)",
            "O(1)",
        ),
    Command::new("function|restore", -3, NOSCRIPT | WRITE | DENYOOM, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("<serialized-value> [policy(FLUSH|APPEND|REPLACE)]")
        .documented("scripting", "7.0.0", "Restore all the functions on the given payload", "O(1)"),
    Command::new("function|stats", 2, NOSCRIPT | ALLOW_BUSY, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "7.0.0",
        "Return information about the function currently running (name, description, duration)",
        "O(1)",
    ),
];

static SCRIPT_SUBCOMMANDS: &[Command] = &[
    Command::new("script|debug", 3, NOSCRIPT, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("mode(YES|SYNC|NO)")
        .documented("scripting", "3.2.0", "Set the debug mode for executed scripts.", "O(1)"),
    Command::new("script|exists", -3, NOSCRIPT, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("<sha1>...")
        .documented(
            "scripting",
            "2.6.0",
            "Check existence of scripts in the script cache.",
            "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
        ),
    Command::new("script|flush", -2, NOSCRIPT, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("[async(ASYNC|SYNC)]")
        .documented(
            "scripting",
            "2.6.0",
            "Remove all the scripts from the script cache.",
            "O(N) with N being the number of scripts in cache",
        ),
    Command::new("script|help", 2, LOADING | STALE, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("script|kill", 2, NOSCRIPT | ALLOW_BUSY, SERVER).in_categories(category::SCRIPTING).documented(
        "scripting",
        "2.6.0",
        "Kill the script currently in execution.",
        "O(1)",
    ),
    Command::new("script|load", 3, NOSCRIPT | STALE, SERVER)
        .in_categories(category::SCRIPTING)
        .syntax("<script>")
        .documented(
            "scripting",
            "2.6.0",
            "Load the specified Lua script into the script cache.",
            "O(N) with N being the length in bytes of the script body.",
        ),
];
