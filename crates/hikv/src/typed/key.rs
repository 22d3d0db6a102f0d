//! Types of keys, whose encodings sort as they do.

use std::borrow::Cow;

/// Ends a part of a tuple.
const END: [u8; 2] = [0, 0];
/// Stands for a byte 0 within a part of a tuple.
const ZERO: [u8; 2] = [0, 0xFF];

/// A type of keys. Its encodings sort as its values do, byte by byte.
///
/// | type | name | encoding |
/// |---|---|---|
/// | `u8` to `u128` | `u64` | big-endian |
/// | `i8` to `i128` | `i64` | big-endian, the sign bit flipped |
/// | `bool` | `bool` | 0 or 1 |
/// | `String` | `text` | UTF-8 |
/// | `Vec<u8>` | `bytes` | the bytes |
/// | `[u8; N]` | `bytes 16` | the bytes |
/// | `()` | `()` | nothing |
/// | tuples of two to four | `(text, u64)` | one part after the other; text and bytes end with `00 00`, a byte 0 in them is `00 FF` |
///
/// A type of a program implements `name`, `encode` and `decode`. Its name is changed when its encoding is.
pub trait Key: Sized {
    /// Returns the name of the encoding, which the catalog compares.
    fn name() -> Cow<'static, str>;

    /// Appends the encoding.
    fn encode(&self, to: &mut Vec<u8>);

    /// Returns the key of an encoding, or `None` if no key has this one.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Appends the encoding as a part of a tuple, which shows where it ends. Types of a fixed length need no end.
    fn encode_part(&self, to: &mut Vec<u8>) {
        let mut whole = Vec::new();
        self.encode(&mut whole);
        for byte in whole {
            match byte {
                0 => to.extend(ZERO),
                byte => to.push(byte),
            }
        }
        to.extend(END);
    }

    /// Takes a part of a tuple from the front of `bytes`.
    fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
        let mut whole = Vec::new();
        loop {
            match **bytes {
                [0, 0, ref rest @ ..] => {
                    *bytes = rest;
                    return Self::decode(&whole);
                }
                [0, 0xFF, ref rest @ ..] => {
                    whole.push(0);
                    *bytes = rest;
                }
                [0, ..] | [] => return None,
                [byte, ref rest @ ..] => {
                    whole.push(byte);
                    *bytes = rest;
                }
            }
        }
    }
}

/// Methods of a type whose encodings have a fixed length.
macro_rules! fixed_parts {
    ($bytes:expr) => {
        fn encode_part(&self, to: &mut Vec<u8>) {
            self.encode(to);
        }

        fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
            let (part, rest) = bytes.split_at_checked($bytes)?;
            *bytes = rest;
            Self::decode(part)
        }
    };
}

/// Implements [`Key`] for integers. `$flip` is the sign bit of the type's unsigned form.
macro_rules! integers {
    ($($type:ident $unsigned:ident $flip:expr;)*) => {$(
        impl Key for $type {
            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn encode(&self, to: &mut Vec<u8>) {
                to.extend((*self as $unsigned ^ $flip).to_be_bytes());
            }

            fn decode(bytes: &[u8]) -> Option<$type> {
                Some(($unsigned::from_be_bytes(bytes.try_into().ok()?) ^ $flip) as $type)
            }

            fixed_parts!(size_of::<$type>());
        }
    )*};
}

integers! {
    u8 u8 0;
    u16 u16 0;
    u32 u32 0;
    u64 u64 0;
    u128 u128 0;
    i8 u8 1 << 7;
    i16 u16 1 << 15;
    i32 u32 1 << 31;
    i64 u64 1 << 63;
    i128 u128 1 << 127;
}

impl Key for bool {
    fn name() -> Cow<'static, str> {
        "bool".into()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.push((*self).into());
    }

    fn decode(bytes: &[u8]) -> Option<bool> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fixed_parts!(1);
}

impl Key for String {
    fn name() -> Cow<'static, str> {
        "text".into()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<String> {
        Some(str::from_utf8(bytes).ok()?.to_owned())
    }
}

impl Key for Vec<u8> {
    fn name() -> Cow<'static, str> {
        "bytes".into()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }

    fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

impl<const N: usize> Key for [u8; N] {
    fn name() -> Cow<'static, str> {
        format!("bytes {N}").into()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }

    fn decode(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }

    fixed_parts!(N);
}

impl Key for () {
    fn name() -> Cow<'static, str> {
        "()".into()
    }

    fn encode(&self, _to: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }

    fixed_parts!(0);
}

/// Implements [`Key`] for a tuple.
macro_rules! tuples {
    ($($first:ident $($other:ident)*;)*) => {$(
        #[allow(non_snake_case)]
        impl<$first: Key, $($other: Key),*> Key for ($first, $($other),*) {
            fn name() -> Cow<'static, str> {
                let mut name = format!("({}", $first::name());
                $(
                    name.push_str(", ");
                    name.push_str(&$other::name());
                )*
                (name + ")").into()
            }

            fn encode(&self, to: &mut Vec<u8>) {
                let ($first, $($other),*) = self;
                $first.encode_part(to);
                $($other.encode_part(to);)*
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let found = ($first::decode_part(&mut bytes)?, $($other::decode_part(&mut bytes)?),*);
                bytes.is_empty().then_some(found)
            }
        }
    )*};
}

tuples! {
    A B;
    A B C;
    A B C D;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use fastrand::Rng;

    use super::*;

    fn encoded(key: &impl Key) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        bytes
    }

    /// Asserts that encodings are decoded and sort as their keys, also as the first part of a tuple.
    fn sorts<K: Key + Ord + Clone + Debug>(edges: &[K], mut some: impl FnMut(&mut Rng) -> K) {
        let mut rng = Rng::with_seed(3);
        let mut keys = edges.to_vec();
        keys.extend((0..150).map(|_| some(&mut rng)));
        for key in &keys {
            assert_eq!(K::decode(&encoded(key)).as_ref(), Some(key));
            let pair = (key.clone(), 0xFFu8);
            assert_eq!(<(K, u8)>::decode(&encoded(&pair)), Some(pair));
            for other in &keys {
                assert_eq!(encoded(key).cmp(&encoded(other)), key.cmp(other), "{key:?} {other:?}");
                let (a, b) = ((key.clone(), 0xFFu8), (other.clone(), 1u8));
                assert_eq!(encoded(&a).cmp(&encoded(&b)), a.cmp(&b), "{a:?} {b:?}");
            }
        }
    }

    fn some_bytes(rng: &mut Rng) -> Vec<u8> {
        // Few different bytes, so that many keys share their beginnings.
        (0..rng.usize(..5)).map(|_| *rng.choice(&[0, 1, b'a', 0xFE, 0xFF]).unwrap()).collect()
    }

    fn some_text(rng: &mut Rng) -> String {
        (0..rng.usize(..5)).map(|_| *rng.choice(&['\0', '\u{1}', 'a', 'ä', '\u{FFFF}', '😀']).unwrap()).collect()
    }

    macro_rules! integers_sort {
        ($($type:ident)*) => {$(
            sorts(&[$type::MIN, $type::MIN + 1, 0, 1, $type::MAX / 2, $type::MAX], |rng| rng.$type(..));
        )*};
    }

    #[test]
    fn integers_sort_as_their_encodings() {
        integers_sort! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 }
    }

    #[test]
    fn text_and_bytes_sort_as_their_encodings() {
        sorts(&["".to_owned(), "a".into(), "a\0".into(), "a\0b".into(), "b".into()], some_text);
        sorts(&[vec![], vec![0], vec![0, 0], vec![0, 0xFF], vec![0xFF; 3]], some_bytes);
        sorts(&[[0; 3], [0xFF; 3]], |rng| [rng.u8(..2), rng.u8(..), rng.u8(..)]);
        sorts(&[false, true], Rng::bool);
        sorts(&[()], |_| ());
    }

    #[test]
    fn tuples_sort_as_their_encodings() {
        sorts(&[("a".to_owned(), vec![0xFF]), ("a\0".to_owned(), vec![])], |rng| (some_text(rng), some_bytes(rng)));
        sorts(&[(-1i64, String::new(), true)], |rng| (rng.i64(-2..3), some_text(rng), rng.bool()));
        sorts(&[(vec![0], (1u8, vec![]), (), 7u32)], |rng| {
            (some_bytes(rng), (rng.u8(..2), some_bytes(rng)), (), rng.u32(..3))
        });
    }

    #[test]
    fn other_bytes_are_no_keys() {
        assert_eq!(u32::decode(&[1, 2, 3]), None);
        assert_eq!(bool::decode(&[2]), None);
        assert_eq!(String::decode(&[0xFF]), None);
        assert_eq!(<[u8; 2]>::decode(&[1]), None);
        assert_eq!(<()>::decode(&[1]), None);
        for bytes in [&b"a"[..], b"a\0", b"a\0\x01", b"a\0\0", b"a\0\0\x01\x02"] {
            assert_eq!(<(String, u8)>::decode(bytes), None, "{bytes:?}");
        }
        assert_eq!(<(u64, (String, [u8; 4]))>::name(), "(u64, (text, bytes 4))");
    }
}
