//! Broken twins of this crate's rules (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A write that finds another one under way leaves it to that one's commit to make it durable, and does not wait.
pub const SECOND_NOT_WAITED: Canary = Canary("SecondNotWaited");
