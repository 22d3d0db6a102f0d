//! Values that a client chooses so that their checksums collide.

use pmem::crc32c;

/// Bits that change no CRC-32C: the generator polynomial itself, x^32 first, in the order in which a checksum processes
/// bits.
const COLLIDING_BITS: u64 = 1 | 0x82F6_3B78 << 1;

/// Bytes before these bits, which stay unchanged.
const KEPT_BYTES: usize = 8;

/// Returns a different value of the same length and the same checksum, whatever precedes and follows it.
///
/// # Panics
/// If the value is shorter than 16 bytes.
#[must_use]
pub fn forged(value: &[u8]) -> Vec<u8> {
    let mut forged = value.to_vec();
    let bits = COLLIDING_BITS.to_le_bytes();
    forged[KEPT_BYTES..].iter_mut().zip(bits).for_each(|(byte, bits)| *byte ^= bits);
    assert!(forged.len() >= KEPT_BYTES + bits.len() && crc32c(7, &forged) == crc32c(7, value));
    forged
}
