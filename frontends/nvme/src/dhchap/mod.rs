//! DH-HMAC-CHAP: both sides prove knowledge of a secret without revealing it (base specification, 8.13.5).
//!
//! ```text
//! host                                    controller
//! Negotiate: hashes, groups      ->
//!                                <-       Challenge: hash, C1, S1
//! Reply: R1 [, C2, S2]           ->
//!                                <-       Success1 [R2], or Failure1
//! [Success2, or Failure2]        ->
//! ```
//!
//! R1 is computed from C1 with the host's secret. R2 is computed from C2 with the controller's secret, if the host
//! requires mutual authentication. The group is NULL: no session key is agreed on. An eavesdropper can try secrets
//! offline, so secrets are random and as long as a hash.

mod messages;
mod secret;

pub use messages::{Challenge, Failure, Negotiate, Reply, Success};
pub use secret::{Secret, SecretError, Transaction};

/// A hash function that both sides support.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hash {
    /// SHA-256.
    Sha256 = 1,
    /// SHA-384.
    Sha384 = 2,
    /// SHA-512.
    Sha512 = 3,
}

impl Hash {
    /// All of them, strongest first.
    pub const ALL: [Hash; 3] = [Hash::Sha512, Hash::Sha384, Hash::Sha256];

    /// Returns the hash with this number.
    #[must_use]
    pub fn of(number: u8) -> Option<Hash> {
        Hash::ALL.into_iter().find(|hash| *hash as u8 == number)
    }

    /// Returns the length of its output.
    #[must_use]
    pub fn len_bytes(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
            Hash::Sha512 => 64,
        }
    }
}
