//! CLUSTER, ASKING, READONLY and READWRITE: the replies of a Redis without cluster mode.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
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
    Err(FixedError::NoCluster.into())
}
