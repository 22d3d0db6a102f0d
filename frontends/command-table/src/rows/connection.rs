//! Connections and CLIENT.

use crate::category;
use crate::command::Command;
use crate::flag::{ADMIN, ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, STALE};
use crate::policy::When::{Always, Subscribed};
use crate::policy::{SECRET, SERVER};

pub(super) static ROWS: &[Command] = &[
    Command::new("auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, SERVER.hides_from(1))
        .in_categories(category::CONNECTION)
        .syntax("[<username>] <password>")
        .documented(
            "connection",
            "1.0.0",
            "Authenticate to the server",
            "O(N) where N is the number of passwords defined for the user",
        ),
    Command::new("client", -2, 0, SERVER).containing(CLIENT_SUBCOMMANDS).documented(
        "connection",
        "2.4.0",
        "A container for client connection commands",
        "Depends on subcommand.",
    ),
    Command::new("echo", 2, LOADING | STALE | FAST, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("<message>")
        .documented("connection", "1.0.0", "Echo the given string", "O(1)"),
    Command::new("hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, SECRET)
        .in_categories(category::CONNECTION)
        .syntax(
            "[arguments{<protover:integer> [AUTH username_password{<username> <password>}] [SETNAME <clientname>]}]",
        )
        .documented("connection", "6.0.0", "Handshake with Redis", "O(1)"),
    Command::new("ping", -1, FAST, SERVER.when(Subscribed))
        .in_categories(category::CONNECTION)
        .syntax("[<message>]")
        .documented("connection", "1.0.0", "Ping the server", "O(1)"),
    Command::new("quit", -1, ALLOW_BUSY | NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, SERVER.when(Always))
        .in_categories(category::CONNECTION)
        .documented("connection", "1.0.0", "Close the connection", "O(1)"),
    Command::new("reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, SERVER.when(Always))
        .in_categories(category::CONNECTION)
        .documented("connection", "6.2.0", "Reset the connection", "O(1)"),
    Command::new("select", 2, LOADING | STALE | FAST, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("<index:integer>")
        .documented("connection", "1.0.0", "Change the selected database for the current connection", "O(1)"),
];

static CLIENT_SUBCOMMANDS: &[Command] =
    &[
        Command::new("client|getname", 2, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented("connection", "2.6.9", "Get the current connection name", "O(1)"),
        Command::new("client|help", 2, LOADING | STALE, SERVER).in_categories(category::CONNECTION).documented(
            "connection",
            "5.0.0",
            "Show helpful text about the different subcommands",
            "O(1)",
        ),
        Command::new("client|id", 2, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented("connection", "5.0.0", "Returns the client ID for the current connection", "O(1)"),
        Command::new("client|info", 2, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented("connection", "6.2.0", "Returns information about the current client connection.", "O(1)"),
        Command::new("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .alone()
            .syntax(
                "filter(<ip:port>|new-format([ID <client-id:integer>]|[TYPE \
             normal_master_slave_pubsub(NORMAL|MASTER|SLAVE|REPLICA|PUBSUB)]|[USER <username>]|[ADDR \
             <ip:port>]|[LADDR <ip:port>]|[SKIPME <yes/no>])...)",
            )
            .documented(
                "connection",
                "2.4.0",
                "Kill the connection of a client",
                "O(N) where N is the number of client connections",
            ),
        Command::new("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("[TYPE normal_master_replica_pubsub(NORMAL|MASTER|REPLICA|PUBSUB)] [ID id{<client-id:integer>...}]")
            .documented(
                "connection",
                "2.4.0",
                "Get the list of client connections",
                "O(N) where N is the number of client connections",
            ),
        Command::new("client|caching", 3, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("mode(YES|NO)")
            .documented(
                "connection",
                "6.0.0",
                "Instruct the server about tracking or not keys in the next request",
                "O(1)",
            ),
        Command::new("client|getredir", 2, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented("connection", "6.0.0", "Get tracking notifications redirection client ID if any", "O(1)"),
        Command::new("client|no-touch", 3, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("enabled(ON|OFF)")
            .documented(
                "connection",
                "7.2.0",
                "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
                "O(1)",
            ),
        Command::new("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .alone()
            .syntax("<timeout:integer> [mode(WRITE|ALL)]")
            .documented("connection", "3.0.0", "Stop processing commands from clients for some time", "O(1)"),
        Command::new("client|trackinginfo", 2, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented(
                "connection",
                "6.2.0",
                "Return information about server assisted client side caching for the current connection",
                "O(1)",
            ),
        Command::new("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("<client-id:integer> [timeout_error(TIMEOUT|ERROR)]")
            .documented(
                "connection",
                "5.0.0",
                "Unblock a client blocked in a blocking command from a different connection",
                "O(log N) where N is the number of client connections",
            ),
        Command::new("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .documented(
                "connection",
                "6.2.0",
                "Resume processing of clients that were paused",
                "O(N) Where N is the number of paused clients",
            ),
        Command::new("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("enabled(ON|OFF)")
            .documented("connection", "7.0.0", "Set client eviction mode for the current connection", "O(1)"),
        Command::new("client|reply", 3, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("on_off_skip(ON|OFF|SKIP)")
            .documented("connection", "3.2.0", "Instruct the server whether to reply to commands", "O(1)"),
        Command::new("client|setinfo", 4, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("attr(LIB-NAME <libname>|LIB-VER <libver>)")
            .documented("connection", "7.2.0", "Assign client or connection specific attributes", "O(1)"),
        Command::new("client|setname", 3, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax("<connection-name>")
            .documented("connection", "2.6.9", "Set the current connection name", "O(1)"),
        Command::new("client|tracking", -3, NOSCRIPT | LOADING | STALE, SERVER)
            .in_categories(category::CONNECTION)
            .syntax(
                "status(ON|OFF) [REDIRECT <client-id:integer>] [PREFIX <prefix>...*] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
            )
            .documented("connection", "6.0.0", "Enable or disable server assisted client side caching support", "O(1)"),
    ];
