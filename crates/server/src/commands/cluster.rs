//! CLUSTER, ASKING, READONLY and READWRITE: the answer of a Redis that is no cluster.

use crate::errors::{Refusal, Sentence};
use crate::execution::call::{Call, Function};

/// By the names of their rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("asking", disabled),
    ("cluster|countkeysinslot", disabled),
    ("cluster|getkeysinslot", disabled),
    ("cluster|help", disabled),
    ("cluster|info", disabled),
    ("cluster|keyslot", disabled),
    ("cluster|links", disabled),
    ("cluster|myid", disabled),
    ("cluster|nodes", disabled),
    ("cluster|replicas", disabled),
    ("cluster|reset", disabled),
    ("cluster|shards", disabled),
    ("cluster|slaves", disabled),
    ("cluster|slots", disabled),
    ("readonly", disabled),
    ("readwrite", disabled),
];

fn disabled(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(Sentence::NoCluster.into())
}
