//! Records of YCSB's sizes: keys of 23 bytes, values of 100. A number stands for both. Each word of a value tells record and
//! version, so that a value of another record, and one that is torn, are noticed.

use crate::records::mix;

/// Bytes of a key: `user` and a number.
pub(super) const KEY_BYTES: usize = 23;
/// Bytes of a value: a version, and twelve words.
pub(super) const VALUE_BYTES: usize = 100;

const VERSION_BYTES: usize = 4;

/// The key of a record: unique, in random order.
pub(super) fn key(record: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"user0000000000000000000";
    let mut number = scattered(record);
    for digit in key[4..].iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    key
}

/// A bijection of the numbers of 63 bits, which have 19 digits at most.
fn scattered(record: u64) -> u64 {
    const MASK: u64 = u64::MAX >> 1;
    let step = |word: u64, factor: u64| (word ^ word >> 31).wrapping_mul(factor) & MASK;
    let word = step(step(record & MASK, 0xbf58_476d_1ce4_e5b9), 0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// A value of the record.
pub(super) fn value(record: u64, version: u32) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..VERSION_BYTES].copy_from_slice(&version.to_le_bytes());
    let tag = mix(record.rotate_left(32) ^ u64::from(version)).to_le_bytes();
    value[VERSION_BYTES..].chunks_exact_mut(tag.len()).for_each(|word| word.copy_from_slice(&tag));
    value
}

/// Whether it is one of the record's.
pub(super) fn is_value_of(record: u64, found: &[u8]) -> bool {
    found.first_chunk().is_some_and(|version| value(record, u32::from_le_bytes(*version)) == *found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_wrong_values_are_noticed() {
        let keys: BTreeSet<_> = (0..10_000).map(key).collect();
        assert!(keys.len() == 10_000 && keys.iter().all(|key| key.starts_with(b"user")));
        let (first, second) = (value(7, 3), value(7, 4));
        assert!(is_value_of(7, &first) && !is_value_of(8, &first) && !is_value_of(7, &first[..99]));
        for torn_at in (4..VALUE_BYTES).step_by(8) {
            let torn = [&first[..torn_at], &second[torn_at..]].concat();
            assert!(!is_value_of(7, &torn), "torn at {torn_at}");
        }
    }
}
