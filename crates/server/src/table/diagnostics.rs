use super::category;
use super::command::{Action, Command};
use super::cost::Cost::Moment;
use super::flag::{ADMIN, LOADING, NOSCRIPT, READONLY, STALE};
use super::needs::Needs::Any;
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::Touches::{Nothing, OthersRequests};
use super::touches::{Access, subcommand_key};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new("info", -1, LOADING | STALE, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .in_categories(category::DANGEROUS)
        .documented("server", "1.0.0", "Get information and statistics about the server", "O(1)"),
    Command::new("latency", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(LATENCY_SUBCOMMANDS)
        .documented("server", "2.8.13", "A container for latency diagnostics commands", "Depends on subcommand."),
    Command::new("memory", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(MEMORY_SUBCOMMANDS)
        .documented("server", "4.0.0", "A container for memory diagnostics commands", "Depends on subcommand."),
    Command::new("slowlog", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(SLOWLOG_SUBCOMMANDS)
        .documented("server", "2.2.12", "A container for slow log commands", "Depends on subcommand."),
];

static LATENCY_SUBCOMMANDS: &[Command] = &[
    Command::new(
        "latency|doctor",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Return a human readable latency analysis report.", "O(1)"),
    Command::new(
        "latency|graph",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Return a latency graph for the event.", "O(1)"),
    Command::new(
        "latency|help",
        2,
        LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Show helpful text about the different subcommands.", "O(1)"),
    Command::new(
        "latency|histogram",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented(
        "server",
        "7.0.0",
        "Return the cumulative distribution of latencies of a subset of commands or all.",
        "O(N) where N is the number of commands with latency information being retrieved.",
    ),
    Command::new(
        "latency|history",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Return timestamp-latency samples for the event.", "O(1)"),
    Command::new(
        "latency|latest",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Return the latest latency samples for all events.", "O(1)"),
    Command::new(
        "latency|reset",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.8.13", "Reset latency data for one or more events.", "O(1)"),
];

static MEMORY_SUBCOMMANDS: &[Command] = &[
    Command::new("memory|doctor", 2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("server", "4.0.0", "Outputs memory problems report", "O(1)"),
    Command::new(
        "memory|help",
        2,
        LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "4.0.0", "Show helpful text about the different subcommands", "O(1)"),
    Command::new("memory|malloc-stats", 2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented(
            "server",
            "4.0.0",
            "Show allocator internal stats",
            "Depends on how much memory is allocated, could be slow",
        ),
    Command::new("memory|purge", 2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented(
            "server",
            "4.0.0",
            "Ask the allocator to release memory",
            "Depends on how much memory is allocated, could be slow",
        ),
    Command::new("memory|stats", 2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("server", "4.0.0", "Show memory usage details", "O(1)"),
    Command::new(
        "memory|usage",
        -3,
        READONLY,
        policy(Kind::Read, subcommand_key(Access::Inspect), Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "4.0.0", "Estimate the memory usage of a key", "O(N) where N is the number of samples."),
];

static SLOWLOG_SUBCOMMANDS: &[Command] = &[
    Command::new(
        "slowlog|get",
        -2,
        ADMIN | LOADING | STALE,
        policy(Kind::Other, OthersRequests, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.2.12", "Get the slow log's entries", "O(N) where N is the number of entries returned"),
    Command::new(
        "slowlog|help",
        2,
        LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "6.2.0", "Show helpful text about the different subcommands", "O(1)"),
    Command::new(
        "slowlog|len",
        2,
        ADMIN | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented("server", "2.2.12", "Get the slow log's length", "O(1)"),
    Command::new(
        "slowlog|reset",
        2,
        ADMIN | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .documented(
        "server",
        "2.2.12",
        "Clear all entries from the slow log",
        "O(N) where N is the number of entries in the slowlog",
    ),
];
