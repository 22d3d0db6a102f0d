//! CLUSTER and related commands: clients use them to detect whether the server is part of a cluster.

use crate::category;
use crate::command::Command;
use crate::flag::{ADMIN, FAST, LOADING, STALE};
use crate::policy::SERVER;

pub(super) static ROWS: &[Command] = &[
    Command::new("asking", 1, FAST, SERVER).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Sent by cluster clients after an -ASK redirect",
        "O(1)",
    ),
    Command::new("cluster", -2, 0, SERVER).containing(SUBCOMMANDS).documented(
        "cluster",
        "3.0.0",
        "A container for cluster commands",
        "Depends on subcommand.",
    ),
    Command::new("readonly", 1, LOADING | STALE | FAST, SERVER).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Enables read queries for a connection to a cluster replica node",
        "O(1)",
    ),
    Command::new("readwrite", 1, LOADING | STALE | FAST, SERVER).in_categories(category::CONNECTION).documented(
        "cluster",
        "3.0.0",
        "Disables read queries for a connection to a cluster replica node",
        "O(1)",
    ),
];

static SUBCOMMANDS: &[Command] = &[
    Command::new("cluster|countkeysinslot", 3, STALE, SERVER).syntax("<slot:integer>").documented(
        "cluster",
        "3.0.0",
        "Return the number of local keys in the specified hash slot",
        "O(1)",
    ),
    Command::new("cluster|getkeysinslot", 4, STALE, SERVER).syntax("<slot:integer> <count:integer>").documented(
        "cluster",
        "3.0.0",
        "Return local key names in the specified hash slot",
        "O(1)",
    ),
    Command::new("cluster|help", 2, LOADING | STALE, SERVER).documented(
        "cluster",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("cluster|info", 2, STALE, SERVER).documented(
        "cluster",
        "3.0.0",
        "Provides info about Redis Cluster node state",
        "O(1)",
    ),
    Command::new("cluster|keyslot", 3, STALE, SERVER).syntax("<key>").documented(
        "cluster",
        "3.0.0",
        "Returns the hash slot of the specified key",
        "O(1)",
    ),
    Command::new("cluster|links", 2, STALE, SERVER).documented(
        "cluster",
        "7.0.0",
        "Returns a list of all TCP links to and from peer nodes in cluster",
        "O(1)",
    ),
    Command::new("cluster|myid", 2, STALE, SERVER).documented("cluster", "3.0.0", "Return the node id", "O(1)"),
    Command::new("cluster|nodes", 2, STALE, SERVER).documented(
        "cluster",
        "3.0.0",
        "Get Cluster config for the node",
        "O(1)",
    ),
    Command::new("cluster|replicas", 3, ADMIN | STALE, SERVER).syntax("<node-id>").documented(
        "cluster",
        "5.0.0",
        "List replica nodes of the specified master node",
        "O(1)",
    ),
    Command::new("cluster|reset", -2, ADMIN | STALE, SERVER).syntax("[hard_soft(HARD|SOFT)]").documented(
        "cluster",
        "3.0.0",
        "Reset a Redis Cluster node",
        "O(1)",
    ),
    Command::new("cluster|shards", 2, STALE, SERVER).documented(
        "cluster",
        "7.0.0",
        "Get array of cluster slots to node mappings",
        "O(1)",
    ),
    Command::new("cluster|slaves", 3, ADMIN | STALE, SERVER).syntax("<node-id>").documented(
        "cluster",
        "3.0.0",
        "List replica nodes of the specified master node",
        "O(1)",
    ),
    Command::new("cluster|slots", 2, STALE, SERVER).documented(
        "cluster",
        "3.0.0",
        "Get array of Cluster slot to node mappings",
        "O(1)",
    ),
];
