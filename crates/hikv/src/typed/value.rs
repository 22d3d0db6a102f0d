//! Types of values.

use std::borrow::Cow;

use super::Key;

/// A type of values. Every [`Key`] is one, and so are `f32` and `f64` (little-endian).
///
/// A type of a program implements it by a format of its choice, for example one of serde's. Its name is changed when
/// its encoding is.
pub trait Value: Sized {
    /// Returns the name of the encoding, which the catalog compares.
    fn name() -> Cow<'static, str>;

    /// Appends the encoding.
    fn encode(&self, to: &mut Vec<u8>);

    /// Returns the value of an encoding, or `None` if no value has this one.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl<K: Key> Value for K {
    fn name() -> Cow<'static, str> {
        K::name()
    }

    fn encode(&self, to: &mut Vec<u8>) {
        Key::encode(self, to);
    }

    fn decode(bytes: &[u8]) -> Option<K> {
        <K as Key>::decode(bytes)
    }
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Value for $type {
            fn name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn encode(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }

            fn decode(bytes: &[u8]) -> Option<$type> {
                bytes.try_into().ok().map($type::from_le_bytes)
            }
        }
    )*};
}

floats! { f32 f64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_decoded_as_encoded() {
        for number in [0.0, -1.5, f64::MIN_POSITIVE, f64::INFINITY] {
            let mut bytes = Vec::new();
            number.encode(&mut bytes);
            assert_eq!(f64::decode(&bytes), Some(number));
        }
        assert_eq!(f32::decode(&[0; 5]), None);
    }
}
