//! Records: a number determines a key and a value, and nothing about records is kept in memory.
//!
//! A key is a bijective mix of the record's number, so keys are unique and in random order. A value contains a *stamp*
//! (a tag of the record, and a version) in the first eight bytes, and again in the last eight, or in as many as there
//! are. This detects a value of another record, a value that was cut, and a value torn between two versions.

/// The shortest key: the eight bytes that make it unique.
pub const KEY_BYTES_MIN: usize = 8;
/// The shortest value: a stamp, and its version again.
pub const VALUE_BYTES_MIN: usize = STAMP_BYTES + VERSION_BITS as usize / 8;

const STAMP_BYTES: usize = 8;
/// The stamp's low bits hold the version, the others the record's tag.
const VERSION_BITS: u32 = 24;
const VERSION_MASK: u64 = (1 << VERSION_BITS) - 1;
/// Makes stamps and keys different, so that a key found in a value's place does not pass as its stamp.
const STAMP_SALT: u64 = 0x5bd1_e995_9d1b_58d3;
/// Odd, and far from any simple fraction of 2^64: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The loaded records: their number and format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Records {
    /// The number of records; at least one, at most [`RECORDS_MAX`](crate::RECORDS_MAX).
    pub count: u64,
    /// The length of each key, at least [`KEY_BYTES_MIN`] more than `shared_bytes`.
    pub key_bytes: usize,
    /// The number of zero bytes with which all keys begin.
    pub shared_bytes: usize,
    /// The length of each value, at least [`VALUE_BYTES_MIN`].
    pub value_bytes: usize,
}

impl Records {
    /// Returns the bytes of a key and its value.
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }

    /// Fills `key`, whose first bytes are zero, with the key of `record`.
    pub(crate) fn write_key(&self, record: u64, key: &mut [u8]) {
        write_key(record, &mut key[self.shared_bytes..]);
    }

    /// Returns the record of `key`, if it can be a record's key.
    pub(crate) fn record_of(&self, key: &[u8]) -> Option<u64> {
        key.get(self.shared_bytes..).and_then(record_of).filter(|_| key.len() == self.key_bytes)
    }

    /// Returns true if `key` and `value` belong to one record.
    pub(crate) fn is_item(&self, key: &[u8], value: &[u8]) -> bool {
        self.record_of(key).is_some_and(|record| is_value_of(record, value, self.value_bytes))
    }
}

/// Returns a record that is never stored.
pub(crate) fn absent(number: u64) -> u64 {
    1 << 63 | number
}

/// Returns the `number`th record that `thread` adds to the loaded ones.
pub(crate) fn fresh(thread: usize, number: u64) -> u64 {
    1 << 62 | (thread as u64) << 40 | number
}

/// Returns the thread and number of an added record; `None` for a loaded one.
pub(crate) fn added_by(record: u64) -> Option<(u64, u64)> {
    (record >> 62 == 1).then_some((record >> 40 & 0x3f_ffff, record & ((1 << 40) - 1)))
}

/// The finaliser of SplitMix64: a bijection on 64 bits.
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The inverse of [`mix`].
fn unmix(word: u64) -> u64 {
    let word = (word ^ word >> 31 ^ word >> 62).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let word = (word ^ word >> 27 ^ word >> 54).wrapping_mul(0x96de_1b17_3f11_9089);
    word ^ word >> 30 ^ word >> 60
}

/// Returns the record of `key`, if it can be a record's key.
fn record_of(key: &[u8]) -> Option<u64> {
    Some(unmix(u64::from_le_bytes(*key.first_chunk()?)).wrapping_sub(GOLDEN))
}

/// Returns the record below `limit`, which is not 0, whose key is the greatest.
pub(crate) fn last_in_order(limit: u64) -> u64 {
    let start_of_key = |record: &u64| mix(record.wrapping_add(GOLDEN)).swap_bytes();
    (0..limit).max_by_key(start_of_key).expect("there is one record at least")
}

/// Fills `key` (at least [`KEY_BYTES_MIN`] bytes) with the key of `record`.
pub fn write_key(record: u64, key: &mut [u8]) {
    let mut state = record;
    for part in key.chunks_mut(8) {
        state = state.wrapping_add(GOLDEN);
        part.copy_from_slice(&mix(state).to_le_bytes()[..part.len()]);
    }
}

/// Writes the stamp of `record` at `version` into both ends of `value` (at least [`VALUE_BYTES_MIN`] bytes).
pub fn stamp(record: u64, version: u64, value: &mut [u8]) {
    let stamp = (tag(record) | version & VERSION_MASK).to_le_bytes();
    let (first, rest) = value.split_at_mut(STAMP_BYTES);
    first.copy_from_slice(&stamp);
    let again = rest.len().min(STAMP_BYTES);
    let last = rest.len() - again;
    rest[last..].copy_from_slice(&stamp[..again]);
}

/// Returns true if `value` is one intact value of `record`, of `len_bytes`, at any version.
pub(crate) fn is_value_of(record: u64, value: &[u8], len_bytes: usize) -> bool {
    let (Some(first), Some(last)) = (value.first_chunk::<STAMP_BYTES>(), value.last_chunk::<STAMP_BYTES>()) else {
        return false;
    };
    let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    // Compares as many of the stamp's bytes as follow it, without a call.
    let missing_bits = 8 * STAMP_BYTES.saturating_sub(value.len() - STAMP_BYTES) as u32;
    let is_again = missing_bits < u64::BITS && last >> missing_bits == first << missing_bits >> missing_bits;
    value.len() == len_bytes && is_again && first & !VERSION_MASK == tag(record)
}

fn tag(record: u64) -> u64 {
    mix(record ^ STAMP_SALT) & !VERSION_MASK
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn key(record: u64, len_bytes: usize) -> Vec<u8> {
        let mut key = vec![0; len_bytes];
        write_key(record, &mut key);
        key
    }

    #[test]
    fn keys_are_unique_across_record_kinds() {
        let records = (0..10_000).flat_map(|number| [number, absent(number), fresh(0, number), fresh(1, number)]);
        let keys: HashSet<Vec<u8>> = records.map(|record| key(record, KEY_BYTES_MIN)).collect();
        assert_eq!(keys.len(), 40_000);
    }

    #[test]
    fn added_record_names_its_adder() {
        assert_eq!(added_by(fresh(7, 9)), Some((7, 9)));
        assert_eq!((added_by(9), added_by(absent(9))), (None, None));
    }

    #[test]
    fn keys_are_in_random_order() {
        let ascending = (0..10_000).filter(|&record| key(record, 16) < key(record + 1, 16)).count();
        assert!((4_500..5_500).contains(&ascending), "{ascending} of 10,000 neighbours ascend");
    }

    #[test]
    fn keys_of_any_length_are_filled() {
        for len_bytes in KEY_BYTES_MIN..40 {
            let last = (0..64).map(|record| key(record, len_bytes)[len_bytes - 1]);
            assert!(last.collect::<HashSet<u8>>().len() > 16, "byte {len_bytes} hardly varies");
        }
    }

    #[test]
    fn the_last_record_has_the_greatest_key() {
        for limit in [1, 2, 1_000] {
            let last = last_in_order(limit);
            assert!(last < limit && (0..limit).all(|record| key(record, 16) <= key(last, 16)));
        }
    }

    proptest! {
        #[test]
        fn key_identifies_its_record(record: u64, len_bytes in KEY_BYTES_MIN..40) {
            prop_assert_eq!(record_of(&key(record, len_bytes)), Some(record));
        }

        #[test]
        fn value_is_known_by_its_record(record: u64, other: u64, version: u64, len_bytes in VALUE_BYTES_MIN..300) {
            let mut value = vec![0; len_bytes];
            stamp(record, version, &mut value);
            prop_assert!(is_value_of(record, &value, len_bytes));
            prop_assert!(record == other || !is_value_of(other, &value, len_bytes));
        }

        #[test]
        fn cut_or_torn_value_is_caught(record: u64, version in 0..1_000_u64, len_bytes in VALUE_BYTES_MIN..300) {
            let mut value = vec![0; len_bytes];
            stamp(record, version, &mut value);
            prop_assert!(!is_value_of(record, &value[..len_bytes - 1], len_bytes));
            let mut newer = vec![0; len_bytes];
            stamp(record, version + 1, &mut newer);
            value[..8].copy_from_slice(&newer[..8]);
            prop_assert!(!is_value_of(record, &value, len_bytes));
        }
    }
}
