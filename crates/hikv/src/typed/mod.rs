//! Trees whose keys and values have types: an optional layer above bytes.
//!
//! A [`TreeOf`] names a tree and its types. [`TreeOf::open`] opens it, and compares the names of the types with those
//! that the tree was first opened with. Keys are encoded so that their bytes sort as the keys do, and ranges are in the
//! order of the keys. The untyped handle of the same tree shows the bytes.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let store = hikv::Store::open(dir.path())?;
//! use std::borrow::Cow;
//!
//! use hikv::Error;
//! use hikv::typed::{TreeOf, Value};
//!
//! #[derive(PartialEq, Debug)]
//! struct Job {
//!     picture: String,
//!     width: u32,
//! }
//!
//! // serde's formats are as short: `serde_json::to_writer(to, self)`.
//! impl Value for Job {
//!     fn name() -> Cow<'static, str> {
//!         "job".into()
//!     }
//!
//!     fn encode(&self, to: &mut Vec<u8>) {
//!         (self.width, self.picture.clone()).encode(to);
//!     }
//!
//!     fn decode(bytes: &[u8]) -> Option<Job> {
//!         let (width, picture) = <(u32, String)>::decode(bytes)?;
//!         Some(Job { picture, width })
//!     }
//! }
//!
//! const TODO: TreeOf<u64, Job> = TreeOf::new("todo");
//! const DONE: TreeOf<(String, u64), ()> = TreeOf::new("done");
//!
//! let (todo, done) = (TODO.open(&store)?, DONE.open(&store)?);
//! todo.put(&1, &Job { picture: "cat.png".into(), width: 800 })?;
//! todo.put(&256, &Job { picture: "dog.png".into(), width: 640 })?;
//! store.transact(|tx| {
//!     let (todo, done) = (tx.typed(&todo)?, tx.typed(&done)?);
//!     let Some((number, job)) = todo.first()? else { return Ok::<_, Error>(()) };
//!     todo.delete(&number)?;
//!     done.put(&(job.picture, number), &())
//! })?;
//! assert_eq!(todo.range(..)?.map(|item| Ok(item?.0)).collect::<Result<Vec<_>, Error>>()?, [256]);
//! assert!(done.contains(&("cat.png".into(), 1))?);
//! let wrong = TreeOf::<u32, Job>::new("todo").open(&store);
//! assert_eq!(wrong.unwrap_err().to_string(), "the tree has the types 'u64 → job', and not 'u32 → job'");
//! # Ok(())
//! # }
//! ```

mod key;
mod range;
mod transaction;
mod tree;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

pub use key::Key;
pub use range::{TypedRange, TypedTxRange};
pub use transaction::TypedTxTree;
pub use tree::TypedTree;
pub use value::Value;

use crate::{Error, Store};

/// The name of a tree, and the types of its keys and values.
pub struct TreeOf<K, V> {
    name: Cow<'static, str>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> fmt::Debug for TreeOf<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TreeOf").field(&self.name).finish()
    }
}

impl<K: Key, V: Value> TreeOf<K, V> {
    /// Returns the tree of this name, for a constant.
    #[must_use]
    pub const fn new(name: &'static str) -> TreeOf<K, V> {
        TreeOf { name: Cow::Borrowed(name), types: PhantomData }
    }

    /// Returns the tree of a name that is computed.
    ///
    /// ```
    /// use hikv::typed::TreeOf;
    ///
    /// let of_user = |user: u32| TreeOf::<u64, String>::named(format!("messages of {user}"));
    /// assert_eq!(of_user(7).name(), "messages of 7");
    /// ```
    #[must_use]
    pub fn named(name: impl Into<String>) -> TreeOf<K, V> {
        TreeOf { name: Cow::Owned(name.into()), types: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the tree, and creates it if there is none. The first call for a tree records the types; later
    /// calls must ask for the same ones. Types belong to the tree's keys: they stay with the tree when it is renamed or
    /// cleared, and swapped with the keys.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::typed::TreeOf;
    ///
    /// const SCORES: TreeOf<(u32, String), i64> = TreeOf::new("scores");
    /// let scores = SCORES.open(&store)?;
    /// scores.put(&(2026, "ada".into()), &-3)?;
    /// assert_eq!(scores.range((2026, String::new())..)?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if the tree has other types; otherwise as for [`Store::tree`].
    pub fn open(&self, store: &Store) -> Result<TypedTree<K, V>, Error> {
        let tree = store.tree(self.name())?;
        store.keyspace().note_types(self.name(), &TreeOf::<K, V>::types())?;
        Ok(TypedTree::of(tree))
    }

    /// Returns the names of the types, as the catalog stores them.
    pub(crate) fn types() -> String {
        format!("{} → {}", K::name(), V::name())
    }
}

/// Returns the encoded form of a key.
fn key_bytes(key: &impl Key) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

/// Returns the encoded form of a value.
fn value_bytes(value: &impl Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn decoded<V: Value>(bytes: &[u8]) -> Result<V, Error> {
    V::decode(bytes).ok_or_else(|| not_of(&V::name(), bytes))
}

fn decoded_item<K: Key, V: Value>((key, value): crate::Item) -> Result<(K, V), Error> {
    Ok((K::decode(&key).ok_or_else(|| not_of(&K::name(), &key))?, decoded(&value)?))
}

#[cold]
fn not_of(name: &str, bytes: &[u8]) -> Error {
    const SHOWN_BYTES_MAX: usize = 32;
    let shown = bytes[..bytes.len().min(SHOWN_BYTES_MAX)].escape_ascii().to_string();
    let shown = if bytes.len() > SHOWN_BYTES_MAX { shown + "…" } else { shown };
    Error::NotOfType { type_name: name.into(), bytes: shown.into() }
}
