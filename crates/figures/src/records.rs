//! Records of 16 bytes of key and 11 of value: a number stands for both. A value tells its record and version, so that one of
//! another record, and one that is torn, are noticed.

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 16;
/// Bytes of a value: what Rewo-Hash's slots hold with a checksum.
pub(crate) const VALUE_BYTES: usize = 11;

/// SplitMix64's finaliser: a bijection.
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The key of a record: unique, in random order.
#[inline(always)]
pub(crate) fn key(record: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mix(record).to_le_bytes());
    key[8..].copy_from_slice(&mix(!record).to_le_bytes());
    key
}

/// A value of the record.
#[inline(always)]
pub(crate) fn value(record: u64, version: u32) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..4].copy_from_slice(&version.to_le_bytes());
    let tag = mix(record.rotate_left(32) ^ u64::from(version)).to_le_bytes();
    value[4..].copy_from_slice(&tag[..VALUE_BYTES - 4]);
    value
}

/// Whether it is one of the record's.
#[inline(always)]
pub(crate) fn is_value_of(record: u64, found: &[u8]) -> bool {
    found.first_chunk().is_some_and(|version| value(record, u32::from_le_bytes(*version)) == *found)
}
