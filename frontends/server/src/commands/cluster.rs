//! CLUSTER, ASKING, READONLY and READWRITE: the replies of a Redis without cluster mode.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    "": ["asking" => disabled, "readonly" => disabled, "readwrite" => disabled],
    "cluster|": [
        "countkeysinslot" => disabled, "getkeysinslot" => disabled, "help" => disabled, "info" => disabled,
        "keyslot" => disabled, "links" => disabled, "myid" => disabled, "nodes" => disabled, "replicas" => disabled,
        "reset" => disabled, "shards" => disabled, "slaves" => disabled, "slots" => disabled,
    ],
];

fn disabled(_: &mut Call<'_>) -> Result<(), Refusal> {
    Err(FixedError::NoCluster.into())
}
