//! Values that were read.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use engine::{Expiry, Version};

use crate::ItemView;

/// The longest value that needs no allocation: with it, a value fills one cache line.
const SHORT_BYTES_MAX: usize = 62;

/// A copy of a value, as bytes. It stays as it is whatever happens to the key and the store, and it keeps no space of
/// the store from being reused. Short values need no allocation.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// store.put("name", "ada")?;
/// let name = store.get("name")?.expect("it was just put");
/// store.delete("name")?;
/// assert_eq!(name, "ada");
/// assert_eq!(name.len(), 3);
/// assert_eq!(std::str::from_utf8(&name)?, "ada");
/// assert_eq!(name.into_vec(), b"ada");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Value(Held);

#[derive(Clone)]
enum Held {
    Short { len_bytes: u8, bytes: [u8; SHORT_BYTES_MAX] },
    Long(Vec<u8>),
}

const _: () = assert!(size_of::<Option<Value>>() == 64);

impl Value {
    /// Returns a copy of `bytes`.
    #[inline]
    pub(crate) fn copied(bytes: &[u8]) -> Value {
        Value(match bytes.len() {
            0..=SHORT_BYTES_MAX => {
                let mut short = [0; SHORT_BYTES_MAX];
                short[..bytes.len()].copy_from_slice(bytes);
                Held::Short { len_bytes: bytes.len() as u8, bytes: short }
            }
            _ => Held::Long(bytes.to_vec()),
        })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Short { .. } => self.to_vec(),
            Held::Long(bytes) => bytes,
        }
    }
}

/// A copy of a value with its version and its expiry: [`Tree::get_item`](crate::Tree::get_item).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VersionedValue {
    /// The value.
    pub value: Value,
    /// The version.
    pub version: Version,
    /// The expiry, [`Expiry::NEVER`] if the key has none.
    pub expiry: Expiry,
}

impl VersionedValue {
    /// Returns a copy of an item that was read in place.
    pub(crate) fn copied(item: ItemView<'_>) -> VersionedValue {
        VersionedValue { value: Value::copied(item.value()), version: item.version(), expiry: item.expiry() }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Short { len_bytes, bytes } => &bytes[..usize::from(*len_bytes)],
            Held::Long(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        value.into_vec()
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        if bytes.len() > SHORT_BYTES_MAX { Value(Held::Long(bytes)) } else { Value::copied(&bytes) }
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value::copied(bytes)
    }
}

impl fmt::Debug for Value {
    /// Writes the bytes as a string with escapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl Eq for Value {}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        **self == **other
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

macro_rules! equal_to {
    ($($other:ty),*) => {$(
        impl PartialEq<$other> for Value {
            fn eq(&self, other: &$other) -> bool {
                **self == *AsRef::<[u8]>::as_ref(other)
            }
        }
    )*};
}

equal_to!([u8], &[u8], Vec<u8>, str, &str);

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}
