//! Broken twins: deliberate faults that the crash explorer must catch.
//!
//! A checker that has never caught anything proves nothing. Each canary removes one step of one protocol; a test runs
//! the same script on the broken twin and demands that the explorer objects. Protocol code asks the medium
//! ([`crate::Medium::breaks`]), whose answer is the constant `false` everywhere but on the crash medium, so that the
//! twins vanish from every shipped build (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

/// A step that a broken twin leaves out or gets wrong: its name, which belongs to the crate that has the rule. That crate lists
/// it in its module `canary`, with what is left out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Canary(pub &'static str);
