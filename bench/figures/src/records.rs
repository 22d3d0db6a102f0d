//! Records that are determined by numbers. A value contains its record and version, so that a value of another record
//! and a torn one are detected.

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

/// Bytes of a key of Rewo-Hash's figures.
pub(crate) const KEY_BYTES: usize = 16;
/// Bytes of their values: the space in a Rewo-Hash slot that has a checksum.
pub(crate) const VALUE_BYTES: usize = 11;

/// The longest key of a [`Shape`].
const KEY_BYTES_MAX: usize = 23;
/// The prefix of users' keys, as in YCSB.
const USER: &[u8] = b"user";
const VERSION_BYTES: usize = 4;

/// The finaliser of SplitMix64: a bijection.
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Returns the key of a record: unique, in random order.
#[inline(always)]
pub(crate) fn key(record: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mix(record).to_le_bytes());
    key[8..].copy_from_slice(&mix(!record).to_le_bytes());
    key
}

/// Returns a value of the record.
#[inline(always)]
pub(crate) fn value(record: u64, version: u32) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    fill(&mut value, record, version);
    value
}

/// Returns true if `found` is a value of the record.
#[inline(always)]
pub(crate) fn is_value_of(record: u64, found: &[u8]) -> bool {
    found.first_chunk().is_some_and(|version| value(record, u32::from_le_bytes(*version)) == *found)
}

/// Fills `value` with a value of the record: a version, and then the same word repeatedly.
#[inline(always)]
fn fill(value: &mut [u8], record: u64, version: u32) {
    let (head, words) = value.split_at_mut(VERSION_BYTES);
    head.copy_from_slice(&version.to_le_bytes());
    let tag = tag(record, version);
    words.chunks_mut(tag.len()).for_each(|word| word.copy_from_slice(&tag[..word.len()]));
}

fn tag(record: u64, version: u32) -> [u8; 8] {
    mix(record.rotate_left(32) ^ u64::from(version)).to_le_bytes()
}

/// Draws popular records more often, as YCSB does: by a Zipf distribution.
pub(crate) struct Popularity {
    ranks: Zipf<f64>,
    record_count: u64,
}

impl Popularity {
    /// YCSB's skew.
    const SKEW: f64 = 0.99;
    /// Scatters popular records among all.
    const SCATTER: u64 = 0x9E37_79B1;

    /// Returns the popularity of this many records.
    pub(crate) fn of(record_count: u64) -> Popularity {
        let ranks = Zipf::new(record_count as f64, Popularity::SKEW).expect("there are records, and a skew");
        Popularity { ranks, record_count }
    }

    /// Draws a rank: 1 is the most popular.
    pub(crate) fn rank(&self, rng: &mut SmallRng) -> u64 {
        self.ranks.sample(rng) as u64
    }

    /// Draws a record.
    pub(crate) fn record(&self, rng: &mut SmallRng) -> u64 {
        self.rank(rng).wrapping_mul(Popularity::SCATTER) % self.record_count
    }
}

/// The lengths of users' keys (`user` and digits) and of their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    key_bytes: usize,
    value_bytes: usize,
    /// Numbers of this many bits have no more digits than a key.
    bits: u32,
}

impl Shape {
    pub(crate) const fn new(key_bytes: usize, value_bytes: usize) -> Shape {
        assert!(key_bytes > USER.len() && key_bytes <= KEY_BYTES_MAX && value_bytes > VERSION_BYTES);
        Shape { key_bytes, value_bytes, bits: 10_u128.pow((key_bytes - USER.len()) as u32).ilog2() }
    }

    /// Calls `used` with the key of a record: unique, in random order.
    #[inline(always)]
    pub(crate) fn with_key<T>(self, record: u64, used: impl FnOnce(&[u8]) -> T) -> T {
        let mut buffer = [b'0'; KEY_BYTES_MAX];
        let key = &mut buffer[..self.key_bytes];
        key[..USER.len()].copy_from_slice(USER);
        let mut number = scattered(record, self.bits);
        for digit in key[USER.len()..].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        used(key)
    }

    /// Returns the length of values.
    pub(crate) const fn value_bytes(self) -> usize {
        self.value_bytes
    }

    /// Returns a buffer for a value.
    pub(crate) fn buffer(self) -> Vec<u8> {
        vec![0; self.value_bytes]
    }

    /// Fills a buffer with a value of the record.
    pub(crate) fn fill(self, buffer: &mut [u8], record: u64, version: u32) {
        fill(buffer, record, version);
    }

    /// Returns true if `found` is a value of the record, checked from the first byte to the last.
    pub(crate) fn is_value_of(self, record: u64, found: &[u8]) -> bool {
        let Some((version, words)) = found.split_first_chunk().filter(|_| found.len() == self.value_bytes) else {
            return false;
        };
        let tag = tag(record, u32::from_le_bytes(*version));
        words.chunks(tag.len()).all(|word| *word == tag[..word.len()])
    }
}

/// A bijection on numbers of this many bits.
fn scattered(record: u64, bits: u32) -> u64 {
    let (mask, half) = (u64::MAX >> (u64::BITS - bits), bits / 2);
    let step = |word: u64, factor: u64| (word ^ word >> half).wrapping_mul(factor) & mask;
    let word = step(step(record & mask, 0xbf58_476d_1ce4_e5b9), 0x94d0_49bb_1331_11eb);
    word ^ word >> half
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_values_checked() {
        for shape in [Shape::new(23, 100), Shape::new(16, 10_240), Shape::new(16, 256)] {
            let key = |record| shape.with_key(record, <[u8]>::to_vec);
            let keys: BTreeSet<_> = (0..10_000).map(key).collect();
            let is_key = |key: &Vec<u8>| key.len() == shape.key_bytes && key.starts_with(USER);
            assert!(keys.len() == 10_000 && keys.iter().all(is_key));
            let value = |version| {
                let mut value = shape.buffer();
                shape.fill(&mut value, 7, version);
                value
            };
            let (first, second) = (value(3), value(4));
            assert!(shape.is_value_of(7, &first) && !shape.is_value_of(8, &first));
            assert!(!shape.is_value_of(7, &first[..first.len() - 1]) && !shape.is_value_of(7, b""));
            for torn_at in (4..first.len()).step_by(8) {
                let torn = [&first[..torn_at], &second[torn_at..]].concat();
                assert!(!shape.is_value_of(7, &torn), "torn at {torn_at}");
            }
        }
    }
}
