//! Canaries of this crate: each names a rule that a broken variant leaves out
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use pmem::Canary;

/// A write that finds another one in progress leaves it to that write's commit to make its own data durable, and does
/// not wait.
pub const SECOND_NOT_WAITED: Canary = Canary("SecondNotWaited");
