//! Canaries: deliberate faults ('broken variants') that the crash explorer must catch.
//!
//! A checker that has never caught anything proves nothing. Each canary removes one step of one protocol; a test
//! runs the same script on the broken variant and demands that the explorer objects. Protocol code queries the
//! medium ([`crate::Medium::breaks`]), which returns the constant `false` except on the crash medium, so no shipped
//! build contains the broken variants (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

/// A step that a broken variant leaves out or gets wrong. The name belongs to the crate that has the rule. That
/// crate lists its canaries, and the faults, in its module `canary`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Canary(pub &'static str);
