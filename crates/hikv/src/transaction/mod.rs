//! Transactions over keys and ranges.
//!
//! An attempt collects the body's reads and changes, by tree (`Part`), and commits in one step. All reads must give the
//! same results at the moment of the commit; otherwise nothing is written, and the body runs again. A body may see
//! different moments, but then its attempt fails. A tree that is cleared or dropped before the commit is a conflict.
//!
//! # Commit of keys only
//! The values that were read are conditions of one batch, which the engine judges under its locks. The batch is written
//! within a window of the thread (crate `transact`), as every write.
//!
//! While the attempt is recent (`epoch::Start`), no place that it has read was reused, so place and checksum identify
//! a value, and no value is hashed. The engine tests this under its locks, after its look at the value: a condition
//! holds only if the attempt is recent then. If a condition fails and the attempt is not recent any more, the batch is
//! written a second time with versions as conditions: hashes of the values as they were read.
//!
//! # Commit with ranges
//! 1. Take the gate lock. If it is not free, read short ranges again first; a difference is a conflict, with no gate
//!    closed.
//! 2. Close the gates of the ranges' trees, and wait until the writes under way have ended.
//! 3. Read the ranges again, and compare the digests of their items. *A difference: open the gates; nothing is
//!    written.* Note the versions of rows that expire.
//! 4. Write the batch, with the versions of points and of these rows as conditions: an expired item is absent when the
//!    engine judges them. *Crash before its commit word: nothing; after: all.*
//! 5. Open the gates, release the lock.
//! 6. Wait for the disk.
//!
//! # Reads only
//! One key needs no commit. Of several, all but the last are read again: if their versions are the same, and no space
//! that was freed since the beginning has been reused (a place may then have another value of the same key), all of
//! them were present when the last one was read. At most one absent key can be judged so. If it is not the last one, it
//! is judged first, and the last one too: the moment is then that of the absent key's second read. Otherwise, if the
//! engine's versions return with their values, or if trees were swapped since the beginning (each look may have met
//! another tree), the reads are the conditions of a batch without operations.
//!
//! # Exclusive attempts
//! After several conflicts, an attempt takes the gate lock before its body begins, and closes the gate of each tree
//! before its first use. Only an expiry or a compaction can then change the results of its reads. If one does, the body
//! runs again, and the gates stay closed.
//!
//! # Lock order
//! Gate lock, windows, locks of the engine. A body holds at most the gate lock, and can open no window.

mod again;
mod attempt;
mod entry;
mod key_map;
mod memory;
mod options;
mod part;
mod points;
mod range;
mod reads;
mod tree;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Deref;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use engine::Error;
use transact::Body;

use crate::Store;
use attempt::Attempt;

pub use entry::Entry;
pub use options::Transact;
pub use range::TxRange;
pub use tree::TxTree;

/// The time that a commit waits for writes under way to end. A write ends within microseconds, unless a caller's code
/// runs in it ([`Tree::update`](crate::Tree::update)).
const PATIENCE: Duration = Duration::from_secs(10);

/// Conflicts after which an attempt is exclusive.
const CONFLICT_COUNT_MAX: u32 = 8;
/// The time after which an attempt is exclusive.
const OPTIMISTIC_TIME_MAX: Duration = Duration::from_millis(20);
/// Items of ranges beyond which one conflict is enough.
const ROW_COUNT_MAX: u64 = 1000;

const PAUSE_MIN: Duration = Duration::from_micros(5);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// A transaction, from [`Store::transact`] or [`Store::begin`]. Its operations are those of [`TxTree`], to which it
/// dereferences. Dropping it without a commit changes nothing.
#[derive(Debug)]
pub struct Transaction<'s>(TxTree<'s>);

impl<'s> Deref for Transaction<'s> {
    type Target = TxTree<'s>;

    fn deref(&self) -> &TxTree<'s> {
        &self.0
    }
}

impl Transaction<'_> {
    /// Writes everything as one step, and returns when it is durable, as far as the storage allows.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another thread has changed a key or range that was read; [`Error::Contended`] if writes
    /// of other threads do not end for ten seconds; otherwise as for [`Tree::write`](crate::Tree::write). Nothing has
    /// changed.
    pub fn commit(self) -> Result<(), Error> {
        let attempt = self.0.attempt();
        attempt.store().keyspace().settled(|| attempt.commit())
    }
}

/// The outcome of one attempt of a closure.
enum Tried<R, E> {
    Done(Result<R, E>),
    Conflict { row_count: u64 },
}

impl Store {
    /// Runs `body` in a transaction and commits it: everything that `body` reads and writes through the transaction
    /// happens at one moment, for all threads and for a crash. Returns the result of `body`. If `body` returns an
    /// error, nothing has changed.
    ///
    /// If another thread changes a key or range that `body` has read, nothing is written, and `body` **runs again**. So
    /// it must have no effects but those on the transaction. While it runs, it may read keys that never were together;
    /// the attempt then fails, whatever `body` returns. After several conflicts, an attempt shuts out other writers
    /// while `body` runs.
    ///
    /// The body must not write to any store but through the transaction, and must not begin another transaction
    /// ([`Error::InsideTransaction`]). Errors of the transaction's operations must be passed on, with `?`.
    ///
    /// Two exceptions: an item may expire between the moment when a commit has looked at it and the end of the commit;
    /// [`TxTree::get_untracked`] reads outside of the transaction.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Error;
    ///
    /// store.put("todo:1", "resize cat.png")?;
    /// store.put("todo:2", "resize dog.png")?;
    /// // Takes the first job of a queue. Each job is taken once, whatever the number of threads.
    /// let job = store.transact(|tx| {
    ///     let Some((key, job)) = tx.prefix("todo:")?.next().transpose()? else { return Ok::<_, Error>(None) };
    ///     tx.delete(&key)?;
    ///     tx.put([b"running:", &key[5..]].concat(), &job)?;
    ///     Ok(Some(job))
    /// })?;
    /// assert_eq!(job.as_deref(), Some(&b"resize cat.png"[..]));
    /// assert_eq!(store.get("running:1")?, store.get("todo:1")?.or(job.map(Into::into)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body`; [`Error::InsideTransaction`] within another body; [`Error::InsideCallback`] within a write;
    /// otherwise as for [`Transaction::commit`].
    pub fn transact<R, E: From<Error>>(&self, body: impl FnMut(&Transaction<'_>) -> Result<R, E>) -> Result<R, E> {
        self.transact_with(Transact::new(), body)
    }

    /// Like [`Store::transact`], with options.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::{Error, Transact};
    ///
    /// // A long body, which would lose against many short ones.
    /// let total = store.transact_with(Transact::new().exclusive_first(), |tx| {
    ///     let mut total = 0;
    ///     for item in tx.prefix("account:")? {
    ///         total += item?.1.len();
    ///     }
    ///     tx.put("total", total.to_string())?;
    ///     Ok::<_, Error>(total)
    /// })?;
    /// assert_eq!(total, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Store::transact`]; [`Error::Contended`] after the last attempt.
    pub fn transact_with<R, E: From<Error>>(
        &self,
        options: Transact,
        mut body: impl FnMut(&Transaction<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.inner().engine()?;
        let (began, mut number, mut is_exclusive) = (Instant::now(), 0, options.is_exclusive_first);
        loop {
            number += 1;
            let row_count = match self.keyspace().settled(|| try_once(self, number, is_exclusive, &mut body))? {
                Tried::Done(result) => return result,
                Tried::Conflict { row_count } => row_count,
            };
            if options.attempt_count_max.is_some_and(|max| number >= max) {
                return Err(Error::Contended { attempts: number }.into());
            }
            let is_late = number >= CONFLICT_COUNT_MAX || began.elapsed() > OPTIMISTIC_TIME_MAX;
            is_exclusive |= options.may_be_exclusive && (is_late || row_count > ROW_COUNT_MAX);
            if !is_exclusive {
                pause(number);
            }
        }
    }

    /// Begins a transaction that its owner commits, without a second attempt: for bindings, and for bodies that are no
    /// closures. Until the commit, the thread may use the store, but sees nothing of the transaction in it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Error;
    ///
    /// store.put("left", "1")?;
    /// let tx = store.begin()?;
    /// tx.put("right", tx.get("left")?.expect("it was just put"))?;
    /// store.put("left", "2")?; // by another thread, perhaps
    /// assert!(matches!(tx.commit(), Err(Error::Conflict)));
    /// assert_eq!(store.get("right")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn begin(&self) -> Result<Transaction<'_>, Error> {
        self.inner().engine()?;
        Ok(Transaction(TxTree::of(Rc::new(Attempt::begin(self, 1, false)?))))
    }
}

/// Runs the body and commits. An exclusive attempt repeats this until no item that was read expires or moves before the
/// commit.
fn try_once<R, E: From<Error>>(
    store: &Store,
    number: u32,
    is_exclusive: bool,
    body: &mut impl FnMut(&Transaction<'_>) -> Result<R, E>,
) -> Result<Tried<R, E>, Error> {
    let attempt = Rc::new(Attempt::begin(store, number, is_exclusive)?);
    loop {
        let inside = Body::begin()?;
        let result = body(&Transaction(TxTree::of(Rc::clone(&attempt))));
        drop(inside);
        let committed = if result.is_ok() { attempt.commit() } else { attempt.validate() };
        match committed {
            Err(Error::Conflict) if is_exclusive => attempt.restart()?,
            Err(Error::Conflict) => return Ok(Tried::Conflict { row_count: attempt.row_count() }),
            Err(error) if result.is_ok() => return Err(error),
            _ => return Ok(Tried::Done(result)),
        }
    }
}

/// Waits before the next attempt: twice as long each time, and not as long as another thread that waits.
fn pause(number: u32) {
    let longest = PAUSE_MAX.min(PAUSE_MIN * (1 << number.min(8)));
    let random = RandomState::new().build_hasher().finish();
    thread::sleep(longest.mul_f64(random as f64 / u64::MAX as f64));
}
