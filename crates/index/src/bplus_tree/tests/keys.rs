//! Keys that are difficult for heads and prefixes.

use std::sync::OnceLock;

/// The number of families of keys.
pub(super) const FAMILY_COUNT: usize = 9;
/// The number of keys in a family.
pub(super) const FAMILY_KEY_COUNT: usize = 1200;

/// Returns key `number` of a family; the same slice each time.
pub(super) fn key(family: usize, number: usize) -> &'static [u8] {
    static KEYS: OnceLock<Vec<Vec<Box<[u8]>>>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let family = |family| (0..FAMILY_KEY_COUNT).map(|number| make(family, number).into()).collect();
        (0..FAMILY_COUNT).map(family).collect()
    });
    &keys[family % FAMILY_COUNT][number % FAMILY_KEY_COUNT]
}

fn make(family: usize, number: usize) -> Vec<u8> {
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    match family {
        // The empty key, and zeros that could be mistaken for padding.
        0 => vec![0; number % 300],
        1 => [&b"abcd"[..number % 5], &vec![0; number / 5 % 40]].concat(),
        2 => mixed.to_be_bytes().repeat(2),
        3 => format!("user{number:012}").into_bytes(),
        4 => [&[b'k'; 24], format!("{mixed:016x}").as_bytes()].concat(),
        // The keys differ in the ninth byte and those after it.
        5 => [b"samehead", &number.to_be_bytes()[6..]].concat(),
        6 => format!("https://www.{}.example.com/a/long/path/to/some/page/{mixed:x}", number % 7).into_bytes(),
        // Each is a prefix of the next.
        7 => (0..number % 700).map(|at| b'a' + (at % 3) as u8).collect(),
        // Keys of the maximum length that differ in their last bytes.
        _ => [&[b'z'; 65_533][..], &(number as u16 % 48).to_be_bytes()].concat(),
    }
}
