//! A tree with types in a transaction.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use engine::Error;

use super::range::TypedTxRange;
use super::tree::{TypedTree, bounds};
use super::{Key, Value, decoded, decoded_item, key_bytes, value_bytes};
use crate::TxTree;

/// A tree with types as a transaction sees it, from [`TxTree::typed`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::Error;
/// use hikv::typed::TreeOf;
///
/// let seats = TreeOf::<u16, String>::new("seats").open(&store)?;
/// store.transact(|tx| {
///     let seats = tx.typed(&seats)?;
///     seats.put(&7, &"ada".into())?;
///     seats.put(&300, &"bob".into())?;
///     assert_eq!(seats.get(&7)?, Some("ada".into()));
///     assert_eq!(seats.first()?, Some((7, "ada".into())));
///     assert_eq!(seats.last()?, Some((300, "bob".into())));
///     assert_eq!(seats.range(8..)?.count(), 1);
///     seats.delete(&300)?;
///     assert_eq!(seats.take(&7)?, Some("ada".into()));
///     assert!(!seats.contains(&7)?);
///     Ok::<_, Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct TypedTxTree<'s, K, V> {
    tree: TxTree<'s>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> fmt::Debug for TypedTxTree<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedTxTree").field(&self.tree).finish()
    }
}

impl<'s> TxTree<'s> {
    /// Returns a tree with types, as the transaction sees it.
    ///
    /// # Errors
    /// As for [`TxTree::tree`].
    pub fn typed<K: Key, V: Value>(&self, tree: &TypedTree<K, V>) -> Result<TypedTxTree<'s, K, V>, Error> {
        Ok(TypedTxTree { tree: tree.within(self)?, types: PhantomData })
    }
}

impl<'s, K: Key, V: Value> TypedTxTree<'s, K, V> {
    /// Returns the key's value, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`TxTree::get`], and [`Error::NotOfType`].
    pub fn get(&self, key: &K) -> Result<Option<V>, Error> {
        self.tree.get(key_bytes(key))?.map(|value| decoded(&value)).transpose()
    }

    /// Returns true if the key is present.
    ///
    /// # Errors
    /// As for [`TxTree::contains`].
    pub fn contains(&self, key: &K) -> Result<bool, Error> {
        self.tree.contains(key_bytes(key))
    }

    /// Puts or replaces the key's value.
    ///
    /// # Errors
    /// As for [`TxTree::put`].
    pub fn put(&self, key: &K, value: &V) -> Result<(), Error> {
        self.tree.put(key_bytes(key), value_bytes(value))
    }

    /// Deletes the key, if it is present.
    ///
    /// # Errors
    /// As for [`TxTree::delete`].
    pub fn delete(&self, key: &K) -> Result<(), Error> {
        self.tree.delete(key_bytes(key))
    }

    /// Deletes the key, and returns its value, or `None` if it was absent.
    ///
    /// # Errors
    /// As for [`TxTree::take`], and [`Error::NotOfType`].
    pub fn take(&self, key: &K) -> Result<Option<V>, Error> {
        self.tree.take(key_bytes(key))?.map(|value| decoded(&value)).transpose()
    }

    /// Returns an iterator over the items of `range` in the order of the keys.
    ///
    /// # Errors
    /// As for [`TxTree::range`].
    pub fn range(&self, range: impl RangeBounds<K>) -> Result<TypedTxRange<'s, K, V>, Error> {
        Ok(TypedTxRange::of(self.tree.range_within(bounds(&range))?))
    }

    /// Returns the item with the least key.
    ///
    /// # Errors
    /// As for [`TxTree::first`], and [`Error::NotOfType`].
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.tree.first()?.map(decoded_item).transpose()
    }

    /// Returns the item with the greatest key.
    ///
    /// # Errors
    /// As for [`TxTree::last`], and [`Error::NotOfType`].
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.tree.last()?.map(decoded_item).transpose()
    }
}
