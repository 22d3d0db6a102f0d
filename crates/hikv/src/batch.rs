//! Several writes as one atomic step.

use catalog::Space;
use engine::{BatchOp, Clock, Condition, Error, Version};

use crate::tree::{Mapping, StoredKeys};
use crate::{Expires, PutOptions, Tree};

/// Puts and deletes that [`Tree::write`](crate::Tree::write) applies as one atomic step: after a crash, and for
/// every reader, either all of them have happened or none. The last operation on a key wins. Conditions
/// ([`WriteBatch::expect_absent`], [`WriteBatch::expect_version`]) make the batch a transaction: it is applied only if
/// no other writer has changed the keys that it depends on.
///
/// A batch holds copies of its keys and values. It can be written several times, to any store.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::WriteBatch;
///
/// store.put("alice", "70")?;
/// let mut batch = WriteBatch::new();
/// batch.delete("alice").put("bob", "70");
/// assert_eq!(batch.len(), 2);
/// store.write(&batch)?;
/// assert!(!store.contains("alice")?);
/// assert_eq!(store.get("bob")?.as_deref(), Some(&b"70"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    expected: Vec<Expectation>,
    /// The trees of [`WriteBatch::tree`], each once.
    trees: Vec<Mapping>,
    /// The tree of further operations: see [`Entry::tree`].
    tree: usize,
}

/// A condition of a batch.
#[derive(Clone, Debug)]
struct Expectation {
    key: Vec<u8>,
    /// `None` requires that the key is absent.
    version: Option<Version>,
    /// As [`Entry::tree`].
    tree: usize,
}

/// The lengths of an operation's key and value, which follow those of the previous operation in `bytes`.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key_bytes: usize,
    /// `None` for a delete.
    value_bytes: Option<usize>,
    expires: Expires,
    /// 0 for the tree to which the batch is written; otherwise one more than the index of another.
    tree: usize,
}

impl WriteBatch {
    /// Returns an empty batch.
    #[must_use]
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Lets further operations and conditions apply to another tree than the one to which the batch is written. A batch
    /// over several trees is one step, as any other. The trees belong to the store to which it is written.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let (todo, running) = (store.tree("todo")?, store.tree("running")?);
    /// todo.put("1", "resize cat.png")?;
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.tree(&todo).delete("1").tree(&running).put("1", "resize cat.png");
    /// store.write(&batch)?;
    /// assert!(!todo.contains("1")? && running.contains("1")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tree(&mut self, tree: &Tree) -> &mut WriteBatch {
        let found = self.trees.iter().position(|other| other.is_same(tree.keyspace().mapping()));
        self.tree = 1 + found.unwrap_or_else(|| {
            self.trees.push(tree.keyspace().mapping().clone());
            self.trees.len() - 1
        });
        self
    }

    /// Adds an operation that puts or replaces the key's value.
    ///
    /// ```
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.put("one", "eins").put("two", "zwei");
    /// assert_eq!(batch.len(), 2);
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.put_with(key, value, PutOptions::new())
    }

    /// Adds an operation that puts or replaces the key's value with an expiry. A duration counts from the moment when
    /// the batch is written. A condition of the options becomes a condition of the batch. Their durability does not
    /// count, because a batch has one durability ([`Store::with_durability`](crate::Store::with_durability)).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{PutOptions, Ttl, WriteBatch};
    /// use std::time::Duration;
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put("user:7", "ann").put_with("session:7", "f3", PutOptions::new().ttl(Duration::from_secs(60)));
    /// store.write(&batch)?;
    /// assert!(matches!(store.ttl("session:7")?, Some(Ttl::Left(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_with(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: PutOptions) -> &mut WriteBatch {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let entry =
            Entry { key_bytes: key.len(), value_bytes: Some(value.len()), expires: options.expires, tree: self.tree };
        self.entries.push(entry);
        if let Some(expected) = options.expected {
            self.expect(key, expected.version());
        }
        self
    }

    /// Adds an operation that deletes the key if it exists.
    ///
    /// ```
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.delete("one");
    /// assert!(!batch.is_empty());
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.bytes.extend_from_slice(key.as_ref());
        let key_bytes = key.as_ref().len();
        self.entries.push(Entry { key_bytes, value_bytes: None, expires: Expires::Never, tree: self.tree });
        self
    }

    /// Adds a condition: the batch is applied only if the key still has `version`, from [`Tree::get_item`].
    ///
    /// A version changes with the value and with the expiry. It may also change when the store moves the item: read
    /// the key again then. Versions belong to one opening of the store: no key has the same version after the store is
    /// opened again.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Error, WriteBatch};
    ///
    /// store.put("alice", "70")?;
    /// let seen = store.get_item("alice")?.expect("it was just put").version;
    /// store.put("alice", "60")?;
    /// let mut batch = WriteBatch::new();
    /// batch.expect_absent("bob").expect_version("alice", seen).delete("alice").put("bob", "70");
    /// assert!(matches!(store.write(&batch), Err(Error::ConditionFailed { condition: 1 })));
    /// assert_eq!(store.get("alice")?.as_deref(), Some(&b"60"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Tree::get_item`]: crate::Tree::get_item
    pub fn expect_version(&mut self, key: impl AsRef<[u8]>, version: Version) -> &mut WriteBatch {
        self.expect(key.as_ref(), Some(version));
        self
    }

    /// Adds a condition: the batch is applied only if the key is absent. Conditions refer to the moment before the
    /// batch. [`Error::ConditionFailed`](crate::Error::ConditionFailed) numbers them from 0 in the order of their
    /// addition.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.expect_absent("owner").put("owner", "ada").put("by:ada", "owner");
    /// store.write(&batch)?;
    /// assert!(matches!(store.write(&batch), Err(hikv::Error::ConditionFailed { condition: 0 })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_absent(&mut self, key: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.expect(key.as_ref(), None);
        self
    }

    /// Returns the number of operations, without conditions. The limit of a batch is in bytes, and checked when it is
    /// written: [`Limits::BATCH_BYTES_MAX`](crate::Limits::BATCH_BYTES_MAX).
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the batch has neither operations nor conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.expected.is_empty()
    }

    /// Removes all operations and conditions, and keeps the allocated memory.
    ///
    /// ```
    /// let mut batch = hikv::WriteBatch::new();
    /// batch.delete("one");
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// ```
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.expected.clear();
        self.trees.clear();
        self.tree = 0;
    }

    fn expect(&mut self, key: &[u8], version: Option<Version>) {
        self.expected.push(Expectation { key: key.to_vec(), version, tree: self.tree });
    }

    /// Returns the trees of [`WriteBatch::tree`].
    pub(crate) fn trees(&self) -> &[Mapping] {
        &self.trees
    }

    /// Returns true if each key belongs to the tree to which the batch is written, and meets the condition.
    pub(crate) fn is_all(&self, condition: impl Fn(&[u8]) -> bool) -> bool {
        let mut keys = self.keys();
        self.trees.is_empty() && keys.all(|(_, key)| condition(key))
    }

    /// Returns the keys of all conditions and then of all operations in their stored form. The space of the tree to
    /// which the batch is written is the first.
    pub(crate) fn stored_keys(&self, spaces: &[Space]) -> StoredKeys {
        let mut stored = StoredKeys::default();
        self.keys().for_each(|(tree, key)| stored.push(spaces[tree], key));
        stored
    }

    fn keys(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = &*self.bytes;
        let written = self.entries.iter().map(move |entry| {
            let (key, behind) = rest.split_at(entry.key_bytes);
            rest = &behind[entry.value_bytes.unwrap_or(0)..];
            (entry.tree, key)
        });
        self.expected.iter().map(|expected| (expected.tree, &*expected.key)).chain(written)
    }

    /// Returns the conditions. Their keys come from `stored`, if there is any.
    pub(crate) fn conditions<'b>(&'b self, stored: Option<&'b StoredKeys>) -> Vec<Condition<'b>> {
        let mut stored = stored.map(StoredKeys::iter);
        let mut key_of = |key| stored.as_mut().and_then(Iterator::next).unwrap_or(key);
        self.expected
            .iter()
            .map(|expected| Condition { key: key_of(&expected.key), required: expected.version.into() })
            .collect()
    }

    /// Returns the operations in their order, with expiries by this clock. Their keys come from `stored`, if there is
    /// any.
    pub(crate) fn ops<'b>(&'b self, clock: &Clock, stored: Option<&'b StoredKeys>) -> Result<Vec<BatchOp<'b>>, Error> {
        let mut stored = stored.map(|stored| stored.iter().skip(self.expected.len()));
        let mut rest = &*self.bytes;
        let mut ops = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let (key, behind) = rest.split_at(entry.key_bytes);
            let (value, behind) = behind.split_at(entry.value_bytes.unwrap_or(0));
            rest = behind;
            let key = stored.as_mut().and_then(Iterator::next).unwrap_or(key);
            ops.push(match (entry.value_bytes, entry.expires) {
                (None, _) => BatchOp::Delete { key },
                (_, Expires::Never) => BatchOp::Put { key, value },
                (_, expires) => match expires.by(clock)? {
                    expiry if expiry.is_never() => BatchOp::Put { key, value },
                    expiry => BatchOp::PutUntil { key, value, expiry },
                },
            });
        }
        Ok(ops)
    }
}
