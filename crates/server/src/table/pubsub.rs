use super::command::{Action, Command};
use super::cost::Cost::Moment;
use super::flag::{FAST, LOADING, NOSCRIPT, PUBSUB, STALE};
use super::needs::Needs::Any;
use super::policy::Hides::Open;
use super::policy::When::{Pushes, Usual};
use super::policy::policy;
use super::touches::Channels::{Listened, PatternsListened, Published};
use super::touches::Touches::{Channels, Nothing};
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    Command::new("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Channels(PatternsListened), Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "2.0.0", "Listen for messages published to channels matching the given patterns", "O(N) where N is the number of patterns the client is already subscribed to."),
    Command::new("publish", 3, PUBSUB | LOADING | STALE | FAST, policy(Kind::Message, Channels(Published), Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "2.0.0", "Post a message to a channel", "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of subscribed patterns (by any client)."),
    Command::new("pubsub", -2, 0, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(PUBSUB_SUBCOMMANDS)
        .documented("pubsub", "2.8.0", "A container for Pub/Sub commands", "Depends on subcommand."),
    Command::new("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Nothing, Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "2.0.0", "Stop listening for messages posted to channels matching the given patterns", "O(N+M) where N is the number of patterns the client is already subscribed and M is the number of total patterns subscribed in the system (by any client)."),
    Command::new("spublish", 3, PUBSUB | LOADING | STALE | FAST, policy(Kind::Message, Channels(Published), Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "7.0.0", "Post a message to a shard channel", "O(N) where N is the number of clients subscribed to the receiving shard channel."),
    Command::new("ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Channels(Listened), Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "7.0.0", "Listen for messages published to the given shard channels", "O(N) where N is the number of shard channels to subscribe to."),
    Command::new("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Channels(Listened), Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "2.0.0", "Listen for messages published to the given channels", "O(N) where N is the number of channels to subscribe to."),
    Command::new("sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Nothing, Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "7.0.0", "Stop listening for messages posted to the given shard channels", "O(N) where N is the number of clients already subscribed to a shard channel."),
    Command::new("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, policy(Kind::Message, Nothing, Open, Pushes, Moment, Any), Action::Apply)
        .documented("pubsub", "2.0.0", "Stop listening for messages posted to the given channels", "O(N) where N is the number of clients already subscribed to a channel."),
];

static PUBSUB_SUBCOMMANDS: &[Command] = &[
    Command::new("pubsub|channels", -2, PUBSUB | LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "2.8.0", "List active channels", "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short channels and patterns)"),
    Command::new("pubsub|help", 2, LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "6.2.0", "Show helpful text about the different subcommands", "O(1)"),
    Command::new("pubsub|numpat", 2, PUBSUB | LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "2.8.0", "Get the count of unique patterns pattern subscriptions", "O(1)"),
    Command::new("pubsub|numsub", -2, PUBSUB | LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "2.8.0", "Get the count of subscribers for channels", "O(N) for the NUMSUB subcommand, where N is the number of requested channels"),
    Command::new("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "7.0.0", "List active shard channels", "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively short shard channels)."),
    Command::new("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, policy(Kind::Message, Nothing, Open, Usual, Moment, Any), Action::Apply)
        .documented("pubsub", "7.0.0", "Get the count of subscribers for shard channels", "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels"),
];
