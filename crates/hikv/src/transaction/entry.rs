//! One key of a transaction.

use engine::Error;

use super::tree::TxTree;
use crate::{Decision, Value};

/// A key of a transaction, from [`TxTree::entry`]. Every call tracks a read of the key.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::Error;
///
/// store.put("visits", "1")?;
/// let visits = store.transact(|tx| {
///     let entry = tx.entry("visits").and_modify(|visits| visits.push(b'1'))?;
///     assert_eq!(tx.entry("visitors").value()?, None);
///     assert_eq!(tx.entry("visitors").or_insert("ada")?, "ada");
///     tx.entry("draft").remove()?;
///     Ok::<_, Error>(entry.or_insert("1")?.len())
/// })?;
/// assert_eq!(visits, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Entry<'s> {
    tree: TxTree<'s>,
    key: Vec<u8>,
}

impl<'s> Entry<'s> {
    pub(super) fn of(tree: &TxTree<'s>, key: &[u8]) -> Entry<'s> {
        Entry { tree: tree.clone(), key: key.to_vec() }
    }

    /// Returns the key's value, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`TxTree::get`].
    pub fn value(&self) -> Result<Option<Value>, Error> {
        self.tree.get(&self.key)
    }

    /// Returns the key's value. Puts `value` first if the key is absent.
    ///
    /// # Errors
    /// As for [`TxTree::get`] and [`TxTree::put`].
    pub fn or_insert(&self, value: impl AsRef<[u8]>) -> Result<Value, Error> {
        if let Some(present) = self.value()? {
            return Ok(present);
        }
        self.tree.put(&self.key, value.as_ref())?;
        Ok(Value::copied(value.as_ref()))
    }

    /// Changes the key's value if the key is present, and keeps its expiry.
    ///
    /// # Errors
    /// As for [`TxTree::update`].
    pub fn and_modify(self, modify: impl FnOnce(&mut Vec<u8>)) -> Result<Entry<'s>, Error> {
        self.tree.update(&self.key, |value| {
            let Some(value) = value else { return Decision::Keep };
            let mut new = value.to_vec();
            modify(&mut new);
            Decision::Put(new.into())
        })?;
        Ok(self)
    }

    /// Deletes the key, and returns its value, or `None` if it was absent.
    ///
    /// # Errors
    /// As for [`TxTree::take`].
    pub fn remove(self) -> Result<Option<Value>, Error> {
        self.tree.take(&self.key)
    }
}
