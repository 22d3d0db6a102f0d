//! A tree with types.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use engine::Error;

use super::range::TypedRange;
use super::{Key, Value, decoded, decoded_item, key_bytes, value_bytes};
use crate::ordered::Bounds;
use crate::{Tree, TxTree};

/// A tree with types, from [`super::TreeOf::open`]. Clones share the tree.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::typed::TreeOf;
///
/// let ages = TreeOf::<String, u8>::new("ages").open(&store)?;
/// ages.put(&"ada".into(), &36)?;
/// ages.put(&"bob".into(), &7)?;
/// assert_eq!(ages.get(&"ada".into())?, Some(36));
/// assert_eq!(ages.first()?, Some(("ada".into(), 36)));
/// assert_eq!(ages.last()?, Some(("bob".into(), 7)));
/// assert!(ages.delete(&"bob".into())? && !ages.contains(&"bob".into())?);
/// assert_eq!((ages.len()?, ages.is_empty()?), (1, false));
/// assert_eq!(ages.untyped().get("ada")?.as_deref(), Some(&[36][..]));
/// # Ok(())
/// # }
/// ```
pub struct TypedTree<K, V> {
    tree: Tree,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedTree<K, V> {
    fn clone(&self) -> TypedTree<K, V> {
        TypedTree { tree: self.tree.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for TypedTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedTree").field(&self.tree).finish()
    }
}

impl<K: Key, V: Value> TypedTree<K, V> {
    /// Returns a tree whose types were compared.
    pub(crate) fn of(tree: Tree) -> TypedTree<K, V> {
        TypedTree { tree, types: PhantomData }
    }

    /// Returns the tree of bytes.
    #[must_use]
    pub fn untyped(&self) -> &Tree {
        &self.tree
    }

    /// Returns the key's value, or `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::NotOfType`] if the bytes are of no such value; otherwise as for [`Tree::get`].
    pub fn get(&self, key: &K) -> Result<Option<V>, Error> {
        self.tree.get(key_bytes(key))?.map(|value| decoded(&value)).transpose()
    }

    /// Returns true if the key is present.
    ///
    /// # Errors
    /// As for [`Tree::contains`].
    pub fn contains(&self, key: &K) -> Result<bool, Error> {
        self.tree.contains(key_bytes(key))
    }

    /// Puts or replaces the key's value.
    ///
    /// # Errors
    /// As for [`Tree::put`].
    pub fn put(&self, key: &K, value: &V) -> Result<(), Error> {
        self.tree.put(key_bytes(key), value_bytes(value))
    }

    /// Deletes the key. Returns false if it was absent.
    ///
    /// # Errors
    /// As for [`Tree::delete`].
    pub fn delete(&self, key: &K) -> Result<bool, Error> {
        self.tree.delete(key_bytes(key))
    }

    /// Returns the number of keys.
    ///
    /// # Errors
    /// As for [`Tree::len`].
    pub fn len(&self) -> Result<u64, Error> {
        self.tree.len()
    }

    /// Returns true if there is no key.
    ///
    /// # Errors
    /// As for [`Tree::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.tree.is_empty()
    }

    /// Returns an iterator over the items of `range` in the order of the keys.
    ///
    /// # Errors
    /// As for [`Tree::range`].
    pub fn range(&self, range: impl RangeBounds<K>) -> Result<TypedRange<K, V>, Error> {
        Ok(TypedRange::of(self.tree.ordered()?.range_within(bounds(&range))?))
    }

    /// Returns the item with the least key.
    ///
    /// # Errors
    /// As for [`Tree::range`], and [`Error::NotOfType`].
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.tree.ordered()?.first()?.map(decoded_item).transpose()
    }

    /// Returns the item with the greatest key.
    ///
    /// # Errors
    /// As for [`TypedTree::first`].
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.tree.ordered()?.last()?.map(decoded_item).transpose()
    }

    /// Returns the tree as a transaction sees it.
    pub(super) fn within<'s>(&self, tx: &TxTree<'s>) -> Result<TxTree<'s>, Error> {
        tx.tree(&self.tree)
    }
}

/// Returns the range of encodings.
pub(super) fn bounds<K: Key>(range: &impl RangeBounds<K>) -> Bounds {
    Bounds::between(range.start_bound().map(key_bytes), range.end_bound().map(key_bytes))
}
