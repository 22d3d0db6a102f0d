use super::category;
use super::command::{Action, Command};
use super::cost::Cost::Moment;
use super::flag::{ADMIN, ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, STALE};
use super::needs::Needs::Any;
use super::policy::Hides::{From, Open};
use super::policy::When::{Always, Subscribed, Usual};
use super::policy::policy;
use super::touches::Touches::Nothing;
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "auth",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        policy(Kind::Other, Nothing, From(1), Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "1.0.0",
        "Authenticate to the server",
        "O(N) where N is the number of passwords defined for the user",
    ),
    Command::new("client", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(CLIENT_SUBCOMMANDS)
        .documented("connection", "2.4.0", "A container for client connection commands", "Depends on subcommand."),
    Command::new(
        "echo",
        2,
        LOADING | STALE | FAST,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "1.0.0", "Echo the given string", "O(1)"),
    Command::new(
        "hello",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        policy(Kind::Other, Nothing, From(2), Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "6.0.0", "Handshake with Redis", "O(1)"),
    Command::new("ping", -1, FAST, policy(Kind::Other, Nothing, Open, Subscribed, Moment, Any), Action::Apply)
        .in_categories(category::CONNECTION)
        .documented("connection", "1.0.0", "Ping the server", "O(1)"),
    Command::new(
        "quit",
        -1,
        ALLOW_BUSY | NOSCRIPT | LOADING | STALE | FAST | NO_AUTH,
        policy(Kind::Other, Nothing, Open, Always, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "1.0.0", "Close the connection", "O(1)"),
    Command::new(
        "reset",
        1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        policy(Kind::Other, Nothing, Open, Always, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "6.2.0", "Reset the connection", "O(1)"),
    Command::new(
        "select",
        2,
        LOADING | STALE | FAST,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "1.0.0", "Change the selected database for the current connection", "O(1)"),
];

static CLIENT_SUBCOMMANDS: &[Command] = &[
    Command::new(
        "client|getname",
        2,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "2.6.9", "Get the current connection name", "O(1)"),
    Command::new(
        "client|help",
        2,
        LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "5.0.0", "Show helpful text about the different subcommands", "O(1)"),
    Command::new(
        "client|id",
        2,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "5.0.0", "Returns the client ID for the current connection", "O(1)"),
    Command::new(
        "client|info",
        2,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "6.2.0", "Returns information about the current client connection.", "O(1)"),
    Command::new(
        "client|kill",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .alone()
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "2.4.0",
        "Kill the connection of a client",
        "O(N) where N is the number of client connections",
    ),
    Command::new(
        "client|list",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "2.4.0",
        "Get the list of client connections",
        "O(N) where N is the number of client connections",
    ),
    Command::new(
        "client|caching",
        3,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "6.0.0",
        "Instruct the server about tracking or not keys in the next request",
        "O(1)",
    ),
    Command::new(
        "client|getredir",
        2,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "6.0.0", "Get tracking notifications redirection client ID if any", "O(1)"),
    Command::new(
        "client|no-touch",
        3,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "7.2.0",
        "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
        "O(1)",
    ),
    Command::new(
        "client|pause",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .alone()
    .documented("connection", "3.0.0", "Stop processing commands from clients for some time", "O(1)"),
    Command::new(
        "client|trackinginfo",
        2,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "6.2.0",
        "Return information about server assisted client side caching for the current connection",
        "O(1)",
    ),
    Command::new(
        "client|unblock",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "5.0.0",
        "Unblock a client blocked in a blocking command from a different connection",
        "O(log N) where N is the number of client connections",
    ),
    Command::new(
        "client|unpause",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented(
        "connection",
        "6.2.0",
        "Resume processing of clients that were paused",
        "O(N) Where N is the number of paused clients",
    ),
    Command::new(
        "client|no-evict",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "7.0.0", "Set client eviction mode for the current connection", "O(1)"),
    Command::new(
        "client|reply",
        3,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "3.2.0", "Instruct the server whether to reply to commands", "O(1)"),
    Command::new(
        "client|setinfo",
        4,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "7.2.0", "Assign client or connection specific attributes", "O(1)"),
    Command::new(
        "client|setname",
        3,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "2.6.9", "Set the current connection name", "O(1)"),
    Command::new(
        "client|tracking",
        -3,
        NOSCRIPT | LOADING | STALE,
        policy(Kind::Other, Nothing, Open, Usual, Moment, Any),
        Action::Apply,
    )
    .in_categories(category::CONNECTION)
    .documented("connection", "6.0.0", "Enable or disable server assisted client side caching support", "O(1)"),
];
