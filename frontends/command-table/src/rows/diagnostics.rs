//! INFO, LATENCY, MEMORY and SLOWLOG.

use crate::category;
use crate::command::Command;
use crate::flag::{ADMIN, LOADING, NOSCRIPT, READONLY, STALE};
use crate::kind::Kind;
use crate::policy::{SERVER, on};
use crate::touches::Touches::OthersRequests;
use crate::touches::{Access, subcommand_key};

pub(super) static ROWS: &[Command] = &[
    Command::new("info", -1, LOADING | STALE, SERVER)
        .in_categories(category::DANGEROUS)
        .syntax("[<section>...]")
        .documented("server", "1.0.0", "Get information and statistics about the server", "O(1)"),
    Command::new("latency", -2, 0, SERVER).containing(LATENCY_SUBCOMMANDS).documented(
        "server",
        "2.8.13",
        "A container for latency diagnostics commands",
        "Depends on subcommand.",
    ),
    Command::new("memory", -2, 0, SERVER).containing(MEMORY_SUBCOMMANDS).documented(
        "server",
        "4.0.0",
        "A container for memory diagnostics commands",
        "Depends on subcommand.",
    ),
    Command::new("slowlog", -2, 0, SERVER).containing(SLOWLOG_SUBCOMMANDS).documented(
        "server",
        "2.2.12",
        "A container for slow log commands",
        "Depends on subcommand.",
    ),
];

static LATENCY_SUBCOMMANDS: &[Command] =
    &[
        Command::new("latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER).documented(
            "server",
            "2.8.13",
            "Return a human readable latency analysis report.",
            "O(1)",
        ),
        Command::new("latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER).syntax("<event>").documented(
            "server",
            "2.8.13",
            "Return a latency graph for the event.",
            "O(1)",
        ),
        Command::new("latency|help", 2, LOADING | STALE, SERVER).documented(
            "server",
            "2.8.13",
            "Show helpful text about the different subcommands.",
            "O(1)",
        ),
        Command::new("latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .syntax("[<command>...]")
            .documented(
                "server",
                "7.0.0",
                "Return the cumulative distribution of latencies of a subset of commands or all.",
                "O(N) where N is the number of commands with latency information being retrieved.",
            ),
        Command::new("latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER).syntax("<event>").documented(
            "server",
            "2.8.13",
            "Return timestamp-latency samples for the event.",
            "O(1)",
        ),
        Command::new("latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER).documented(
            "server",
            "2.8.13",
            "Return the latest latency samples for all events.",
            "O(1)",
        ),
        Command::new("latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .syntax("[<event>...]")
            .documented("server", "2.8.13", "Reset latency data for one or more events.", "O(1)"),
    ];

static MEMORY_SUBCOMMANDS: &[Command] = &[
    Command::new("memory|doctor", 2, 0, SERVER).documented("server", "4.0.0", "Outputs memory problems report", "O(1)"),
    Command::new("memory|help", 2, LOADING | STALE, SERVER).documented(
        "server",
        "4.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("memory|malloc-stats", 2, 0, SERVER).documented(
        "server",
        "4.0.0",
        "Show allocator internal stats",
        "Depends on how much memory is allocated, could be slow",
    ),
    Command::new("memory|purge", 2, 0, SERVER).documented(
        "server",
        "4.0.0",
        "Ask the allocator to release memory",
        "Depends on how much memory is allocated, could be slow",
    ),
    Command::new("memory|stats", 2, 0, SERVER).documented("server", "4.0.0", "Show memory usage details", "O(1)"),
    Command::new("memory|usage", -3, READONLY, on(Kind::Read, subcommand_key(Access::Inspect)))
        .syntax("<key:key> [SAMPLES <count:integer>]")
        .documented("server", "4.0.0", "Estimate the memory usage of a key", "O(N) where N is the number of samples."),
];

static SLOWLOG_SUBCOMMANDS: &[Command] = &[
    Command::new("slowlog|get", -2, ADMIN | LOADING | STALE, on(Kind::Other, OthersRequests))
        .syntax("[<count:integer>]")
        .documented("server", "2.2.12", "Get the slow log's entries", "O(N) where N is the number of entries returned"),
    Command::new("slowlog|help", 2, LOADING | STALE, SERVER).documented(
        "server",
        "6.2.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("slowlog|len", 2, ADMIN | LOADING | STALE, SERVER).documented(
        "server",
        "2.2.12",
        "Get the slow log's length",
        "O(1)",
    ),
    Command::new("slowlog|reset", 2, ADMIN | LOADING | STALE, SERVER).documented(
        "server",
        "2.2.12",
        "Clear all entries from the slow log",
        "O(N) where N is the number of entries in the slowlog",
    ),
];
