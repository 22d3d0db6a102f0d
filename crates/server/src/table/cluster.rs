//! CLUSTER and related commands: clients use them to detect whether the server is part of a cluster.

use super::category;
use super::command::{Action, Command};
use super::cost::Cost::Moment;
use super::flag::{ADMIN, FAST, LOADING, STALE};
use super::needs::Needs::Any;
use super::policy::Hides::Open;
use super::policy::When::Usual;
use super::policy::policy;
use super::touches::Touches::Nothing;
use crate::telemetry::Kind;

pub(super) static ROWS: &[Command] = &[
    probe("asking", 1, FAST).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Sent by cluster clients after an -ASK redirect",
        "O(1)",
    ),
    Command::new("cluster", -2, 0, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Subcommands)
        .with_subcommands(SUBCOMMANDS)
        .documented("cluster", "3.0.0", "A container for cluster commands", "Depends on subcommand."),
    probe("readonly", 1, LOADING | STALE | FAST).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Enables read queries for a connection to a cluster replica node",
        "O(1)",
    ),
    probe("readwrite", 1, LOADING | STALE | FAST).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Disables read queries for a connection to a cluster replica node",
        "O(1)",
    ),
];

const fn probe(name: &'static str, arity: i64, flags: u32) -> Command {
    Command::new(name, arity, flags, policy(Kind::Other, Nothing, Open, Usual, Moment, Any), Action::Apply)
}

static SUBCOMMANDS: &[Command] = &[
    probe("cluster|countkeysinslot", 3, STALE).documented(
        "cluster",
        "3.0.0",
        "Return the number of local keys in the specified hash slot",
        "O(1)",
    ),
    probe("cluster|getkeysinslot", 4, STALE).documented(
        "cluster",
        "3.0.0",
        "Return local key names in the specified hash slot",
        "O(1)",
    ),
    probe("cluster|help", 2, LOADING | STALE).documented(
        "cluster",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    probe("cluster|info", 2, STALE).documented(
        "cluster",
        "3.0.0",
        "Provides info about Redis Cluster node state",
        "O(1)",
    ),
    probe("cluster|keyslot", 3, STALE).documented(
        "cluster",
        "3.0.0",
        "Returns the hash slot of the specified key",
        "O(1)",
    ),
    probe("cluster|links", 2, STALE).documented(
        "cluster",
        "7.0.0",
        "Returns a list of all TCP links to and from peer nodes in cluster",
        "O(1)",
    ),
    probe("cluster|myid", 2, STALE).documented("cluster", "3.0.0", "Return the node id", "O(1)"),
    probe("cluster|nodes", 2, STALE).documented("cluster", "3.0.0", "Get Cluster config for the node", "O(1)"),
    probe("cluster|replicas", 3, ADMIN | STALE).documented(
        "cluster",
        "5.0.0",
        "List replica nodes of the specified master node",
        "O(1)",
    ),
    probe("cluster|reset", -2, ADMIN | STALE).documented("cluster", "3.0.0", "Reset a Redis Cluster node", "O(1)"),
    probe("cluster|shards", 2, STALE).documented(
        "cluster",
        "7.0.0",
        "Get array of cluster slots to node mappings",
        "O(1)",
    ),
    probe("cluster|slaves", 3, ADMIN | STALE).documented(
        "cluster",
        "3.0.0",
        "List replica nodes of the specified master node",
        "O(1)",
    ),
    probe("cluster|slots", 2, STALE).documented(
        "cluster",
        "3.0.0",
        "Get array of Cluster slot to node mappings",
        "O(1)",
    ),
];
