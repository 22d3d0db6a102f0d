//! Sealed words, which carry their own check: 48 bits of payload below 16 bits of checksum.
//!
//! A header that must change with one 8-byte store has no space for a separate checksum, so the checksum is in the
//! word. Zero never unseals, so memory that was never written differs from a payload of zero.

use crate::crc32c;

const PAYLOAD_BITS: u32 = 48;
const PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;
/// Any non-zero value for which the checksum of payload 0 is not 0.
const SEAL_SEED: u32 = 0x5EA1;

/// Returns `payload` with its check in the upper 16 bits.
///
/// # Panics
/// If the payload needs more than 48 bits.
#[must_use]
pub fn seal(payload: u64) -> u64 {
    assert!(payload <= PAYLOAD, "payload {payload:#x} needs more than {PAYLOAD_BITS} bits");
    payload | check(payload) << PAYLOAD_BITS
}

/// Returns the payload of a sealed word, or `None` if the check does not match: never written, torn or damaged.
#[must_use]
pub fn unseal(word: u64) -> Option<u64> {
    let payload = word & PAYLOAD;
    (word >> PAYLOAD_BITS == check(payload)).then_some(payload)
}

fn check(payload: u64) -> u64 {
    u64::from(crc32c(SEAL_SEED, &payload.to_le_bytes()) & 0xFFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_words_open_and_zero_fails() {
        for payload in [0, 1, 0xABCD, PAYLOAD] {
            assert_eq!(unseal(seal(payload)), Some(payload));
        }
        assert_eq!(unseal(0), None);
    }

    #[test]
    fn every_single_bit_flip_is_noticed() {
        for payload in [0, 7, 0x1234_5678_9ABC, PAYLOAD] {
            for bit in 0..64 {
                assert_eq!(unseal(seal(payload) ^ 1 << bit), None, "payload {payload:#x}, bit {bit}");
            }
        }
    }
}
