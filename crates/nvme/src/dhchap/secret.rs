//! Secrets, and the responses computed from them.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384, Sha512};

use super::Hash;

/// A secret in the format of `nvme gen-dhchap-key`: `DHHC-1:`, a hash in two digits, `:`, base 64 of the key and its
/// CRC-32, `:`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: Vec<u8>,
    /// The hash that binds the key to its owner's name.
    transform: Option<Hash>,
}

/// Why a text is not a valid secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SecretError {
    /// It does not have the form `DHHC-1:hh:…:`.
    Form,
    /// The hash is unknown.
    Hash,
    /// The key does not have 32, 48 or 64 bytes, as its hash requires.
    Length,
    /// The checksum differs: it was not copied completely.
    Checksum,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecretError::Form => "a secret has the form DHHC-1:00:…:, as `nvme gen-dhchap-key` makes it",
            SecretError::Hash => "the secret names a hash that is not known: 00 to 03 are",
            SecretError::Length => "the secret's key has another length than its hash",
            SecretError::Checksum => "the secret's checksum differs: a part of it is missing or wrong",
        })
    }
}

impl std::error::Error for SecretError {}

/// The inputs of a response in addition to the challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transaction<'a> {
    /// The negotiated hash.
    pub hash: Hash,
    /// The transaction's number.
    pub id: u16,
    /// The challenge's number.
    pub sequence: u32,
    /// The host's name.
    pub host: &'a str,
    /// The subsystem's name.
    pub subsystem: &'a str,
}

impl Secret {
    /// Parses a secret.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn parse(text: &str) -> Result<Secret, SecretError> {
        let rest =
            text.trim().strip_prefix("DHHC-1:").and_then(|rest| rest.strip_suffix(':')).ok_or(SecretError::Form)?;
        let (hash, encoded) = rest.split_once(':').ok_or(SecretError::Form)?;
        let is_number = hash.len() == 2 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u8::from_str_radix(hash, 16).ok().filter(|_| is_number).ok_or(SecretError::Form)?;
        let transform = Hash::of(number);
        if transform.is_none() && number != 0 {
            return Err(SecretError::Hash);
        }
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| SecretError::Form)?;
        let (key, checksum) = bytes.split_last_chunk::<4>().ok_or(SecretError::Length)?;
        let is_length = transform.map_or([32, 48, 64].contains(&key.len()), |hash| hash.len_bytes() == key.len());
        if !is_length {
            return Err(SecretError::Length);
        }
        if crc32fast::hash(key) != u32::from_le_bytes(*checksum) {
            return Err(SecretError::Checksum);
        }
        Ok(Secret { key: key.to_vec(), transform })
    }

    /// Returns the key for the side with this name.
    fn key_of(&self, name: &str) -> Vec<u8> {
        let bound = |hash| mac(hash, &self.key, &[name.as_bytes(), b"NVMe-over-Fabrics"]);
        self.transform.map_or_else(|| self.key.clone(), bound)
    }

    /// Returns a host's response to a challenge.
    #[must_use]
    pub fn host_response(&self, challenge: &[u8], by: &Transaction<'_>) -> Vec<u8> {
        self.response(by.host, challenge, b"HostHost", by.subsystem, by)
    }

    /// Returns a controller's response to a host's challenge.
    #[must_use]
    pub fn controller_response(&self, challenge: &[u8], by: &Transaction<'_>) -> Vec<u8> {
        self.response(by.subsystem, challenge, b"Controller", by.host, by)
    }

    fn response(&self, own: &str, challenge: &[u8], role: &[u8], other: &str, by: &Transaction<'_>) -> Vec<u8> {
        let (sequence, id) = (by.sequence.to_le_bytes(), by.id.to_le_bytes());
        // The zeros: no secure channel, and separators between names.
        let parts = [challenge, &sequence, &id, &[0], role, own.as_bytes(), &[0], other.as_bytes()];
        mac(by.hash, &self.key_of(own), &parts)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

/// Compares two responses in constant time.
#[must_use]
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn mac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn of<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut mac = <M as Mac>::new_from_slice(key).expect("a key of any length will do");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::Sha256 => of::<Hmac<Sha256>>(key, parts),
        Hash::Sha384 => of::<Hmac<Sha384>>(key, parts),
        Hash::Sha512 => of::<Hmac<Sha512>>(key, parts),
    }
}
