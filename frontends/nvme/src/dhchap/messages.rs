//! The messages. Each begins with a two-byte type, two zero bytes, and the transaction's number.

use super::Hash;
use super::secret::is_same;
use crate::bytes::{put, u8_at, u16_at, u32_at};

const NEGOTIATE: [u8; 2] = [0x00, 0x00];
const CHALLENGE: [u8; 2] = [0x01, 0x01];
const REPLY: [u8; 2] = [0x01, 0x02];
const SUCCESS1: [u8; 2] = [0x01, 0x03];
const SUCCESS2: [u8; 2] = [0x01, 0x04];
const FAILURE1: [u8; 2] = [0x00, 0xf0];
const FAILURE2: [u8; 2] = [0x00, 0xf1];
const HEAD_BYTES: usize = 16;
/// A protocol offered by a host: its number, 0, the numbers of hashes and groups, then 30 slots for each.
const OFFER_BYTES: usize = 64;
const DH_HMAC_CHAP: u8 = 1;
const PLACES: usize = 30;
const NULL_GROUP: u8 = 0;

fn head(kind: [u8; 2], id: u16, len_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    put(&mut bytes, 0, &kind);
    put(&mut bytes, 4, &id.to_le_bytes());
    bytes
}

fn is(bytes: &[u8], kind: [u8; 2]) -> bool {
    bytes.starts_with(&kind)
}

/// The offer of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Negotiate {
    /// The transaction's number, chosen by the host.
    pub id: u16,
    /// Hashes in order of preference.
    pub hashes: Vec<Hash>,
}

impl Negotiate {
    /// Decodes a host's message; `None` if it does not offer the NULL group, requires a secure channel, or is invalid.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Negotiate> {
        let has_channel = u8_at(bytes, 6) != 0;
        let offers = bytes.get(8..)?.chunks_exact(OFFER_BYTES).take(u8_at(bytes, 7).into());
        let mut offers = offers.filter(|offer| offer[0] == DH_HMAC_CHAP);
        let offer = offers.next().filter(|_| is(bytes, NEGOTIATE) && !has_channel)?;
        let (hash_count, group_count) = (usize::from(offer[2]), usize::from(offer[3]));
        let hashes = offer[4..4 + PLACES].get(..hash_count)?;
        let groups = offer[4 + PLACES..].get(..group_count)?;
        let hashes = hashes.iter().filter_map(|number| Hash::of(*number)).collect();
        groups.contains(&NULL_GROUP).then(|| Negotiate { id: u16_at(bytes, 4), hashes })
    }

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = head(NEGOTIATE, self.id, 8 + OFFER_BYTES);
        bytes[7] = 1;
        let offer = &mut bytes[8..];
        let count = self.hashes.len().min(PLACES);
        (offer[0], offer[2], offer[3]) = (DH_HMAC_CHAP, count as u8, 1);
        self.hashes.iter().zip(&mut offer[4..4 + PLACES]).for_each(|(hash, place)| *place = *hash as u8);
        bytes
    }
}

/// The challenge of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// The transaction.
    pub id: u16,
    /// The chosen hash.
    pub hash: Hash,
    /// The challenge's number.
    pub sequence: u32,
    /// The challenge, as long as the hash.
    pub value: Vec<u8>,
}

impl Challenge {
    /// Decodes a controller's message.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Challenge> {
        let hash = Hash::of(u8_at(bytes, 8)).filter(|_| is(bytes, CHALLENGE) && u8_at(bytes, 9) == NULL_GROUP)?;
        let is_length = usize::from(u8_at(bytes, 6)) == hash.len_bytes() && u16_at(bytes, 10) == 0;
        let value = bytes.get(HEAD_BYTES..HEAD_BYTES + hash.len_bytes()).filter(|_| is_length)?;
        Some(Challenge { id: u16_at(bytes, 4), hash, sequence: u32_at(bytes, 12), value: value.to_vec() })
    }

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = head(CHALLENGE, self.id, HEAD_BYTES);
        (bytes[6], bytes[8]) = (self.value.len() as u8, self.hash as u8);
        put(&mut bytes, 12, &self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.value);
        bytes
    }
}

/// The reply of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The transaction.
    pub id: u16,
    /// The response.
    pub response: Vec<u8>,
    /// A challenge to the controller with its number, if the host requires mutual authentication.
    pub challenge: Option<(u32, Vec<u8>)>,
}

impl Reply {
    /// Decodes a host's message, for a hash of `hash_bytes`.
    #[must_use]
    pub fn decode(bytes: &[u8], hash_bytes: usize) -> Option<Reply> {
        let is_sound = is(bytes, REPLY) && usize::from(u8_at(bytes, 6)) == hash_bytes && u16_at(bytes, 10) == 0;
        let (response, challenge) = bytes.get(HEAD_BYTES..HEAD_BYTES + 2 * hash_bytes)?.split_at(hash_bytes);
        let challenge = match u8_at(bytes, 8) {
            0 => None,
            _ => Some((u32_at(bytes, 12), challenge.to_vec())),
        };
        is_sound.then(|| Reply { id: u16_at(bytes, 4), response: response.to_vec(), challenge })
    }

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = head(REPLY, self.id, HEAD_BYTES);
        let len = self.response.len();
        bytes[6] = len as u8;
        bytes.extend_from_slice(&self.response);
        match &self.challenge {
            Some((sequence, challenge)) => {
                bytes[8] = 1;
                put(&mut bytes, 12, &sequence.to_le_bytes());
                bytes.extend_from_slice(challenge);
            }
            None => bytes.resize(HEAD_BYTES + 2 * len, 0),
        }
        bytes
    }

    /// Returns whether the response is this one.
    #[must_use]
    pub fn answers(&self, expected: &[u8]) -> bool {
        is_same(&self.response, expected)
    }
}

/// The success message of either side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Success {
    /// From the controller, with the response to the host's challenge, if there was one.
    Controller {
        /// The transaction.
        id: u16,
        /// The length of the hash.
        hash_bytes: usize,
        /// The response.
        response: Option<Vec<u8>>,
    },
    /// From the host.
    Host {
        /// The transaction.
        id: u16,
    },
}

impl Success {
    /// Decodes the other side's message.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Success> {
        let (id, hash_bytes) = (u16_at(bytes, 4), usize::from(u8_at(bytes, 6)));
        if is(bytes, SUCCESS2) {
            return Some(Success::Host { id });
        }
        let response = match u8_at(bytes, 8) {
            0 => None,
            _ => Some(bytes.get(HEAD_BYTES..HEAD_BYTES + hash_bytes)?.to_vec()),
        };
        is(bytes, SUCCESS1).then_some(Success::Controller { id, hash_bytes, response })
    }

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Success::Host { id } => head(SUCCESS2, *id, HEAD_BYTES),
            Success::Controller { id, hash_bytes, response } => {
                let mut bytes = head(SUCCESS1, *id, HEAD_BYTES);
                (bytes[6], bytes[8]) = (*hash_bytes as u8, response.is_some().into());
                bytes.extend_from_slice(response.as_deref().unwrap_or_default());
                bytes
            }
        }
    }

    /// Returns whether it is the controller's, with this response.
    #[must_use]
    pub fn answers(&self, expected: &[u8]) -> bool {
        matches!(self, Success::Controller { response: Some(response), .. } if is_same(response, expected))
    }
}

/// The failure message of either side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The transaction.
    pub id: u16,
    /// True if it is from the host, false if from the controller.
    pub is_of_host: bool,
    /// The reason, as numbered by the specification: 1 the response is wrong, 2 the protocol, 4 the hash, 5 the group,
    /// 6 the message, 7 its order.
    pub why: u8,
}

impl Failure {
    /// Decodes the other side's message.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Failure> {
        let is_of_host = is(bytes, FAILURE2);
        let found = Failure { id: u16_at(bytes, 4), is_of_host, why: u8_at(bytes, 7) };
        (is_of_host || is(bytes, FAILURE1)).then_some(found)
    }

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        const FAILED: u8 = 1;
        let mut bytes = head(if self.is_of_host { FAILURE2 } else { FAILURE1 }, self.id, 8);
        (bytes[6], bytes[7]) = (FAILED, self.why);
        bytes
    }
}
