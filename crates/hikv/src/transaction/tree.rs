//! The operations of a transaction.

use std::ops::RangeBounds;
use std::rc::Rc;

use engine::{Decision, Direction, Error, Expiry, Limits};

use super::attempt::Attempt;
use super::entry::Entry;
use super::part::Change;
use super::range::TxRange;
use crate::ordered::Bounds;
use crate::{Expires, Item, Tree, Value};

/// The keys of a store as a transaction sees them: those of the store, with the transaction's own changes.
///
/// Every read is tracked: the transaction commits only if all of them still hold. Errors are passed on, with `?`.
/// An [`Error::Conflict`] means that the attempt cannot commit any more.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let store = hikv::Store::open(dir.path())?;
/// use hikv::{Error, Expiry};
/// use std::time::Duration;
///
/// store.multi_put([("seat:1", "free"), ("seat:2", "taken"), ("motto", "always on time")])?;
/// store.transact(|tx| {
///     tx.rest_on("seat:".."seat;")?; // fails if any seat changes before the commit
///     let motto = tx.get_untracked("motto")?; // another thread may change it
///     tx.put_ttl("seat:1", "reserved", Duration::from_secs(600))?;
///     assert!(tx.expires_at("seat:1")?.is_some_and(|expiry| expiry != Expiry::NEVER));
///     let bill = tx.savepoint(|| {
///         tx.put("bill", motto.unwrap_or_else(|| b"".as_slice().into()))?;
///         Err::<(), Error>(Error::NoOrder) // undoes the bill, and nothing else
///     });
///     assert!(bill.is_err() && !tx.contains("bill")?);
///     tx.check()?; // ends a stale attempt early
///     println!("attempt {}, exclusive: {}", tx.attempt_number(), tx.is_exclusive());
///     Ok::<_, Error>(())
/// })?;
/// assert_eq!(store.get("seat:1")?.as_deref(), Some(&b"reserved"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TxTree<'s> {
    attempt: Rc<Attempt<'s>>,
    /// The number of the tree among those of the attempt.
    part: usize,
}

impl<'s> TxTree<'s> {
    /// Returns the store's own tree.
    pub(super) fn of(attempt: Rc<Attempt<'s>>) -> TxTree<'s> {
        TxTree { attempt, part: 0 }
    }

    /// Returns another tree of the store, as the transaction sees it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Error;
    ///
    /// let (todo, running) = (store.tree("todo")?, store.tree("running")?);
    /// todo.put("1", "resize cat.png")?;
    /// store.transact(|tx| {
    ///     let (todo, running) = (tx.tree(&todo)?, tx.tree(&running)?);
    ///     let Some((number, job)) = todo.first()? else { return Ok::<_, Error>(()) };
    ///     todo.delete(&number)?;
    ///     running.put(&number, &job)
    /// })?;
    /// assert!(running.contains("1")? && !todo.contains("1")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] if the tree was dropped, or belongs to another store.
    pub fn tree(&self, tree: &Tree) -> Result<TxTree<'s>, Error> {
        Ok(TxTree { part: self.attempt.part_of(tree)?, attempt: Rc::clone(&self.attempt) })
    }

    pub(super) fn attempt(&self) -> &Attempt<'s> {
        &self.attempt
    }

    /// Returns the key's value, or `None` if the key is absent.
    ///
    /// # Errors
    /// [`Error::Conflict`]; otherwise as for [`Tree::get`](crate::Tree::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        let key = key.as_ref();
        if let Some(change) = self.attempt.part(self.part).change_of(key) {
            return Ok(change.value().map(Value::copied));
        }
        self.attempt.read(self.part, key, |item| Value::copied(item.value()))
    }

    /// Returns true if the key is present.
    ///
    /// # Errors
    /// As for [`TxTree::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = key.as_ref();
        if let Some(change) = self.attempt.part(self.part).change_of(key) {
            return Ok(change.value().is_some());
        }
        Ok(self.attempt.read(self.part, key, |_| ())?.is_some())
    }

    /// Returns the key's expiry, or `None` if the key is absent.
    ///
    /// # Errors
    /// As for [`TxTree::get`].
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expiry>, Error> {
        let key = key.as_ref();
        if let Some(change) = self.attempt.part(self.part).change_of(key) {
            return Ok(change.expiry());
        }
        self.attempt.read(self.part, key, |item| item.expiry())
    }

    /// Returns the key's value without tracking the read: the transaction commits even if another thread changes the
    /// key.
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get).
    pub fn get_untracked(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        let part = self.attempt.part(self.part);
        match part.change_of(key.as_ref()) {
            Some(change) => Ok(change.value().map(Value::copied)),
            None => part.tree().get(key),
        }
    }

    /// Puts or replaces a value. The key then has no expiry.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.put_until(key.as_ref(), value.as_ref().to_vec(), Expiry::NEVER)
    }

    /// Puts or replaces a value that expires, counted from this call.
    ///
    /// # Errors
    /// As for [`TxTree::put`]; [`Error::ExpiryTooLate`].
    pub fn put_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires: impl Into<Expires>,
    ) -> Result<(), Error> {
        let expiry = self.attempt.store().inner().expiry(expires.into())?;
        self.put_until(key.as_ref(), value.as_ref().to_vec(), expiry)
    }

    fn put_until(&self, key: &[u8], value: Vec<u8>, expiry: Expiry) -> Result<(), Error> {
        Limits::check_key(key)?;
        Limits::check_value(value.len() as u64)?;
        self.attempt.part_mut(self.part).change(key, Change::Put(value, expiry));
        Ok(())
    }

    /// Deletes the key, if it is present. Reads nothing: see [`TxTree::take`].
    ///
    /// # Errors
    /// [`Error::KeyTooLong`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        Limits::check_key(key.as_ref())?;
        self.attempt.part_mut(self.part).change(key.as_ref(), Change::Delete);
        Ok(())
    }

    /// Deletes the key, and returns its value, or `None` if it was absent.
    ///
    /// # Errors
    /// As for [`TxTree::get`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>, Error> {
        let value = self.get(key.as_ref())?;
        if value.is_some() {
            self.delete(key)?;
        }
        Ok(value)
    }

    /// Calls `decide` with the key's value, and applies its decision. Returns true if it changes anything. A
    /// [`Decision::Put`] keeps the key's expiry.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Decision, Error};
    ///
    /// store.transact(|tx| {
    ///     tx.update("log", |log| Decision::Put([log.unwrap_or_default(), b"one "].concat().into()))?;
    ///     tx.update("log", |log| Decision::Put([log.unwrap_or_default(), b"two"].concat().into()))?;
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(store.get("log")?.as_deref(), Some(&b"one two"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`TxTree::get`] and [`TxTree::put`].
    pub fn update<'v>(
        &self,
        key: impl AsRef<[u8]>,
        decide: impl FnOnce(Option<&[u8]>) -> Decision<'v>,
    ) -> Result<bool, Error> {
        let key = key.as_ref();
        let value = self.get(key)?;
        match decide(value.as_deref()) {
            Decision::Keep => return Ok(false),
            Decision::Put(new) => {
                let expiry = self.expires_at(key)?.unwrap_or(Expiry::NEVER);
                self.put_until(key, new.into_owned(), expiry)?;
            }
            Decision::PutUntil(new, expiry) => self.put_until(key, new.into_owned(), expiry)?,
            Decision::Delete if value.is_none() => return Ok(false),
            Decision::Delete => self.delete(key)?,
        }
        Ok(true)
    }

    /// Returns the key, to read it and change it.
    #[must_use]
    pub fn entry(&self, key: impl AsRef<[u8]>) -> Entry<'s> {
        Entry::of(self, key.as_ref())
    }

    /// Returns an iterator over the items of `range` in key order, with the transaction's own changes. `rev` and
    /// `next_back` iterate from the end. Only items that the iterator reaches count as read, and the rest of the range
    /// once it returns `None`.
    ///
    /// # Errors
    /// As for [`Tree::ordered`](crate::Tree::ordered): ranges need an engine with order.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<TxRange<'s>, Error> {
        self.range_within(Bounds::of(&range))
    }

    pub(crate) fn range_within(&self, bounds: Bounds) -> Result<TxRange<'s>, Error> {
        TxRange::new(&self.attempt, self.part, bounds)
    }

    /// Returns an iterator over the items whose keys begin with `prefix`; see [`TxTree::range`].
    ///
    /// # Errors
    /// As for [`TxTree::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<TxRange<'s>, Error> {
        self.range_within(Bounds::of_prefix(prefix.as_ref()))
    }

    /// Returns the item with the least key.
    ///
    /// # Errors
    /// As for [`TxTree::range`].
    pub fn first(&self) -> Result<Option<Item>, Error> {
        self.end(Direction::Forward)
    }

    /// Returns the item with the greatest key.
    ///
    /// # Errors
    /// As for [`TxTree::range`].
    pub fn last(&self) -> Result<Option<Item>, Error> {
        self.end(Direction::Backward)
    }

    fn end(&self, direction: Direction) -> Result<Option<Item>, Error> {
        if !self.attempt.part(self.part).has_changes() {
            return self.attempt.part_mut(self.part).read_end(direction);
        }
        let mut range = self.range_within(Bounds::ALL)?;
        match direction {
            Direction::Forward => range.next(),
            Direction::Backward => range.next_back(),
        }
        .transpose()
    }

    /// Makes the transaction depend on all items of `range`: it commits only if none of them changes, comes or goes.
    /// Reads the range.
    ///
    /// # Errors
    /// As for [`TxTree::range`].
    pub fn rest_on<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<(), Error> {
        self.range(range)?.try_for_each(|item| item.map(drop))
    }

    /// Returns [`Error::Conflict`] if the attempt cannot commit because a key that was read has changed. For long
    /// bodies; ranges are not looked at.
    ///
    /// # Errors
    /// [`Error::Conflict`]; otherwise as for [`TxTree::get`].
    pub fn check(&self) -> Result<(), Error> {
        self.attempt.check()
    }

    /// Runs `part`, and undoes its changes of all trees if it returns an error. Its reads stay tracked.
    ///
    /// # Errors
    /// Those of `part`.
    pub fn savepoint<R, E>(&self, part: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let before = self.attempt.all_changes();
        part().inspect_err(|_| self.attempt.set_all_changes(before))
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn attempt_number(&self) -> u32 {
        self.attempt.number()
    }

    /// Returns true if other writers are shut out while the body runs.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.attempt.is_exclusive()
    }
}
