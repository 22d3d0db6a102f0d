//! Publish and subscribe.

use crate::command::Command;
use crate::flag::{FAST, LOADING, NOSCRIPT, PUBSUB, STALE};
use crate::kind::Kind;
use crate::policy::When::Pushes;
use crate::policy::on;
use crate::touches::Channels::{Listened, PatternsListened, Published};
use crate::touches::Touches::{Channels, Nothing};

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "psubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        on(Kind::Message, Channels(PatternsListened)).when(Pushes),
    )
    .syntax("pattern{<pattern:pattern>}...")
    .documented(
        "pubsub",
        "2.0.0",
        "Listen for messages published to channels matching the given patterns",
        "O(N) where N is the number of patterns the client is already subscribed to.",
    ),
    Command::new("publish", 3, PUBSUB | LOADING | STALE | FAST, on(Kind::Message, Channels(Published)))
        .syntax("<channel> <message>")
        .documented(
            "pubsub",
            "2.0.0",
            "Post a message to a channel",
            "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total \
             number of subscribed patterns (by any client).",
        ),
    Command::new("pubsub", -2, 0, on(Kind::Message, Nothing)).containing(PUBSUB_SUBCOMMANDS).documented(
        "pubsub",
        "2.8.0",
        "A container for Pub/Sub commands",
        "Depends on subcommand.",
    ),
    Command::new("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, on(Kind::Message, Nothing).when(Pushes))
        .syntax("[<pattern:pattern>...]")
        .documented(
            "pubsub",
            "2.0.0",
            "Stop listening for messages posted to channels matching the given patterns",
            "O(N+M) where N is the number of patterns the client is already subscribed and M is the number \
             of total patterns subscribed in the system (by any client).",
        ),
    Command::new("spublish", 3, PUBSUB | LOADING | STALE | FAST, on(Kind::Message, Channels(Published)))
        .syntax("<shardchannel> <message>")
        .documented(
            "pubsub",
            "7.0.0",
            "Post a message to a shard channel",
            "O(N) where N is the number of clients subscribed to the receiving shard channel.",
        ),
    Command::new(
        "ssubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        on(Kind::Message, Channels(Listened)).when(Pushes),
    )
    .syntax("<shardchannel>...")
    .documented(
        "pubsub",
        "7.0.0",
        "Listen for messages published to the given shard channels",
        "O(N) where N is the number of shard channels to subscribe to.",
    ),
    Command::new(
        "subscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        on(Kind::Message, Channels(Listened)).when(Pushes),
    )
    .syntax("<channel>...")
    .documented(
        "pubsub",
        "2.0.0",
        "Listen for messages published to the given channels",
        "O(N) where N is the number of channels to subscribe to.",
    ),
    Command::new("sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, on(Kind::Message, Nothing).when(Pushes))
        .syntax("[<shardchannel>...]")
        .documented(
            "pubsub",
            "7.0.0",
            "Stop listening for messages posted to the given shard channels",
            "O(N) where N is the number of clients already subscribed to a shard channel.",
        ),
    Command::new("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, on(Kind::Message, Nothing).when(Pushes))
        .syntax("[<channel>...]")
        .documented(
            "pubsub",
            "2.0.0",
            "Stop listening for messages posted to the given channels",
            "O(N) where N is the number of clients already subscribed to a channel.",
        ),
];

static PUBSUB_SUBCOMMANDS: &[Command] = &[
    Command::new("pubsub|channels", -2, PUBSUB | LOADING | STALE, on(Kind::Message, Nothing))
        .syntax("[<pattern:pattern>]")
        .documented(
            "pubsub",
            "2.8.0",
            "List active channels",
            "O(N) where N is the number of active channels, and assuming constant time pattern matching \
             (relatively short channels and patterns)",
        ),
    Command::new("pubsub|help", 2, LOADING | STALE, on(Kind::Message, Nothing)).documented(
        "pubsub",
        "6.2.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("pubsub|numpat", 2, PUBSUB | LOADING | STALE, on(Kind::Message, Nothing)).documented(
        "pubsub",
        "2.8.0",
        "Get the count of unique patterns pattern subscriptions",
        "O(1)",
    ),
    Command::new("pubsub|numsub", -2, PUBSUB | LOADING | STALE, on(Kind::Message, Nothing))
        .syntax("[<channel>...]")
        .documented(
            "pubsub",
            "2.8.0",
            "Get the count of subscribers for channels",
            "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
        ),
    Command::new("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, on(Kind::Message, Nothing))
        .syntax("[<pattern:pattern>]")
        .documented(
            "pubsub",
            "7.0.0",
            "List active shard channels",
            "O(N) where N is the number of active shard channels, and assuming constant time pattern \
             matching (relatively short shard channels).",
        ),
    Command::new("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, on(Kind::Message, Nothing))
        .syntax("[<shardchannel>...]")
        .documented(
            "pubsub",
            "7.0.0",
            "Get the count of subscribers for shard channels",
            "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
        ),
];
