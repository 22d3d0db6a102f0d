//! The server, COMMAND, CONFIG and MODULE.

use crate::category;
use crate::command::Command;
use crate::cost::Cost::{OwnThread, OwnThreadIf};
use crate::flag::{ADMIN, ALLOW_BUSY, FAST, LOADING, NO_MULTI, NOSCRIPT, READONLY, STALE};
use crate::kind::Kind;
use crate::needs::Needs::Snapshots;
use crate::policy::{SECRET, SERVER, on};
use crate::touches::Touches::OthersRequests;

pub(super) static ROWS: &[Command] = &[
    Command::new("module", -2, 0, SERVER).containing(MODULE_SUBCOMMANDS).documented(
        "server",
        "4.0.0",
        "A container for module commands",
        "Depends on subcommand.",
    ),
    Command::new("replicaof", 3, ADMIN | NOSCRIPT | STALE, SERVER).syntax("<host> <port:integer>").documented(
        "server",
        "5.0.0",
        "Make the server a replica of another instance, or promote it as master.",
        "O(1)",
    ),
    Command::new("bgrewriteaof", 1, ADMIN | NOSCRIPT, SERVER).documented(
        "server",
        "1.0.0",
        "Asynchronously rewrite the append-only file",
        "O(1)",
    ),
    Command::new("bgsave", -1, ADMIN | NOSCRIPT, SERVER.needs(Snapshots)).syntax("[SCHEDULE]").documented(
        "server",
        "1.0.0",
        "Asynchronously save the dataset to disk",
        "O(1)",
    ),
    Command::new("command", -1, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .with_subcommands(COMMAND_SUBCOMMANDS)
        .documented(
            "server",
            "2.8.13",
            "Get array of Redis command details",
            "O(N) where N is the total number of Redis commands",
        ),
    Command::new("config", -2, 0, SECRET).containing(CONFIG_SUBCOMMANDS).documented(
        "server",
        "2.0.0",
        "A container for server configuration commands",
        "Depends on subcommand.",
    ),
    Command::new(
        "debug",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        on(Kind::Other, OthersRequests).costs(OwnThreadIf("sleep")),
    )
    .syntax("<subcommand> [<arg>...]")
    .documented("server", "1.0.0", "A container for debugging commands", "Depends on subcommand."),
    Command::new("lastsave", 1, LOADING | STALE | FAST, SERVER)
        .in_categories(category::ADMIN | category::DANGEROUS)
        .documented("server", "1.0.0", "Get the UNIX time stamp of the last successful save to disk", "O(1)"),
    Command::new("lolwut", -1, READONLY | FAST, SERVER).syntax("[VERSION <version:integer>]").documented(
        "server",
        "5.0.0",
        "Display some computer art and the Redis version",
        "",
    ),
    Command::new("monitor", 1, ADMIN | NOSCRIPT | LOADING | STALE, on(Kind::Other, OthersRequests)).documented(
        "server",
        "1.0.0",
        "Listen for all requests received by the server in real time",
        "",
    ),
    Command::new("role", 1, NOSCRIPT | LOADING | STALE | FAST, SERVER)
        .in_categories(category::ADMIN | category::DANGEROUS)
        .documented("server", "2.8.12", "Return the role of the instance in the context of replication", "O(1)"),
    Command::new("save", 1, ADMIN | NOSCRIPT | NO_MULTI, SERVER.costs(OwnThread).needs(Snapshots)).documented(
        "server",
        "1.0.0",
        "Synchronously save the dataset to disk",
        "O(N) where N is the total number of keys in all databases",
    ),
    Command::new("shutdown", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, SERVER)
        .syntax("[nosave_save(NOSAVE|SAVE)] [NOW] [FORCE] [ABORT]")
        .documented(
            "server",
            "1.0.0",
            "Synchronously save the dataset to disk and then shut down the server",
            "O(N) when saving, where N is the total number of keys in all databases when saving data, \
             otherwise O(1)",
        ),
    Command::new("time", 1, LOADING | STALE | FAST, SERVER).documented(
        "server",
        "2.6.0",
        "Return the current server time",
        "O(1)",
    ),
];

static COMMAND_SUBCOMMANDS: &[Command] = &[
    Command::new("command|count", 2, LOADING | STALE, SERVER).in_categories(category::CONNECTION).documented(
        "server",
        "2.8.13",
        "Get total number of Redis commands",
        "O(1)",
    ),
    Command::new("command|docs", -2, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("[<command-name>...]")
        .documented(
            "server",
            "7.0.0",
            "Get array of specific Redis command documentation",
            "O(N) where N is the number of commands to look up",
        ),
    Command::new("command|getkeys", -4, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("<command> <arg>...")
        .documented(
            "server",
            "2.8.13",
            "Extract keys given a full Redis command",
            "O(N) where N is the number of arguments to the command",
        ),
    Command::new("command|getkeysandflags", -4, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("<command> <arg>...")
        .documented(
            "server",
            "7.0.0",
            "Extract keys and access flags given a full Redis command",
            "O(N) where N is the number of arguments to the command",
        ),
    Command::new("command|help", 2, LOADING | STALE, SERVER).in_categories(category::CONNECTION).documented(
        "server",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("command|info", -2, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("[<command-name>...]")
        .documented(
            "server",
            "2.8.13",
            "Get array of specific Redis command details, or all when no argument is given.",
            "O(N) where N is the number of commands to look up",
        ),
    Command::new("command|list", -2, LOADING | STALE, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("[FILTERBY filterby(MODULE <module-name>|ACLCAT <category>|PATTERN <pattern:pattern>)]")
        .documented(
            "server",
            "7.0.0",
            "Get an array of Redis command names",
            "O(N) where N is the total number of Redis commands",
        ),
];

static CONFIG_SUBCOMMANDS: &[Command] = &[
    Command::new("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, SECRET)
        .syntax("parameter{<parameter>}...")
        .documented(
            "server",
            "2.0.0",
            "Get the values of configuration parameters",
            "O(N) when N is the number of configuration parameters provided",
        ),
    Command::new("config|help", 2, LOADING | STALE, SECRET).documented(
        "server",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "2.0.0",
        "Reset the stats returned by INFO",
        "O(1)",
    ),
    Command::new("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "2.8.0",
        "Rewrite the configuration file with the in memory configuration",
        "O(1)",
    ),
    Command::new("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, SECRET)
        .syntax("parameter_value{<parameter> <value>}...")
        .documented(
            "server",
            "2.0.0",
            "Set configuration parameters to the given values",
            "O(N) when N is the number of configuration parameters provided",
        ),
];

static MODULE_SUBCOMMANDS: &[Command] = &[
    Command::new("module|help", 2, LOADING | STALE, SERVER).documented(
        "server",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("module|list", 2, ADMIN | NOSCRIPT, SERVER).documented(
        "server",
        "4.0.0",
        "List all modules loaded by the server",
        "O(N) where N is the number of loaded modules.",
    ),
];
