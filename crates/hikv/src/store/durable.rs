//! Operations at another durability than the store's, and operations whose durability the caller waits for later.
//!
//! A deferral is a scope of the calling thread: it covers all operations on the store within a closure. So an event
//! loop needs no second version of its commands.

use journal::{Notifier, OsFile, Receipt};
use pmem::{Durability, MediumError};

#[cfg(doc)]
use crate::Tree;
use crate::handles::Kind;
use crate::store::Inner;
use crate::{Error, Store};

/// The writes that must become durable before the results of some operations may be reported; see [`Store::deferred`].
/// A ticket is valid for one opening of one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Ticket(Receipt);

impl Ticket {
    /// Returns a ticket for all writes that any thread has deferred so far.
    pub(crate) fn deferred_so_far(inner: &Inner) -> Ticket {
        inner.journal.as_ref().map_or_else(Ticket::default, |journal| Ticket(journal.deferred_so_far()))
    }

    /// Returns a ticket that covers both.
    pub fn merge(self, other: Ticket) -> Ticket {
        Ticket(self.0.merge(other.0))
    }

    /// Returns the ticket as a number, for bindings. It may cover more than the ticket: of two levels, the number keeps
    /// the higher one.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// use hikv::Ticket;
    ///
    /// let (written, ticket) = store.deferred(|store| store.put("key", "value"));
    /// written?;
    /// let number = ticket.to_number();
    /// store.wait(Ticket::from_number(number))?;
    /// assert!(store.is_durable(ticket)?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn to_number(self) -> u64 {
        self.0.to_number()
    }

    /// Returns the ticket of a number.
    pub fn from_number(number: u64) -> Ticket {
        Ticket(Receipt::from_number(number))
    }
}

/// Wakes an event loop; see [`Store::waker`].
#[derive(Debug)]
pub struct Waker(Option<Notifier<OsFile>>);

impl Waker {
    /// Returns true if results of `ticket` may be reported now. If not, a thread of the store makes them durable,
    /// together with those of other callers. It calls the waker at least once when they are durable, and may call it
    /// earlier, for other requests. Call [`Store::is_durable`] then.
    ///
    /// # Errors
    /// As for [`Store::is_durable`].
    pub fn request(&self, ticket: Ticket) -> Result<bool, Error> {
        Ok(self.0.as_ref().map_or(Ok(true), |notifier| notifier.request(ticket.0))?)
    }
}

impl Store {
    /// Returns the store's durability, which applies to writes that request no other level.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.inner().identity.durability
    }

    /// Returns a handle of the store whose operations are durable at `level` when they return. It keeps the store open,
    /// so it is made once and used often.
    ///
    /// The level covers writes of keys and values, and reads of values: a read waits until the value that it returns is
    /// durable at `level`. Ranges, walks and snapshots are read at the store's own level. Other threads see a write
    /// before it is durable. If the store's own level is higher, their reads wait until it is durable at that level.
    ///
    /// On storage that provides more at no cost (DAX, tmpfs), a lower level makes no difference. On a journal:
    /// - `power`: the disk has synced the write and all earlier ones.
    /// - `buffered`: the kernel has the write, and its sync begins within [`crate::Options::sync_interval`]. Once
    ///   older writes have waited for two intervals, it behaves as `power`.
    /// - `process`: the kernel has the write. A sync happens when a caller requests more.
    ///
    /// A single write can also name its level: [`crate::PutOptions::durability`]. Several writes share one wait in a
    /// [`crate::WriteBatch`], or with [`Store::deferred`] and [`Store::wait`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// use hikv::{Durability, Store};
    ///
    /// let store = Store::open(dir.path())?; // on a disk: a journal
    /// let counters = store.with_durability(Durability::Buffered)?;
    /// counters.increment("clicks", 1)?;
    /// store.put("order:1", "paid")?; // waits for the disk
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Durability`] if the storage does not provide `level`; [`Error::Forked`].
    pub fn with_durability(&self, level: Durability) -> Result<Store, Error> {
        Ok(Store::new(self.with(self.keyspace().at_level(level)?, Kind::Store)))
    }

    /// Runs `operate` without waiting for a disk, and returns its result with a ticket. Until the ticket is durable,
    /// the caller must not report the result, because a crash may still undo what `operate` wrote or read.
    ///
    /// For event loops, which serve other clients while they wait. Writes of `operate` are visible to all threads when
    /// it returns. Another thread that reads such a write waits for it; if that thread also defers, its own ticket
    /// covers the write. A durable write costs readers nothing. A handle of [`Store::with_durability`] within
    /// `operate` does not wait, but changes the level that the ticket waits for.
    ///
    /// A few operations still wait for the disk: [`Tree::clear`]; a write that lengthens the file, finds the entire
    /// log waiting for a checkpoint, or fills a segment of the log; and a write that splits a segment of the index in
    /// which keys were just deleted.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// use std::sync::mpsc;
    ///
    /// let store = hikv::Store::open(dir.path())?;
    /// let (sender, woken) = mpsc::channel();
    /// let waker = store.waker(move || sender.send(()).unwrap_or(())); // an eventfd, in an event loop
    ///
    /// let (written, ticket) = store.deferred(|store| store.put("key", "value"));
    /// written?;
    /// // … and the commands of other clients …
    /// if !waker.request(ticket)? {
    ///     while !store.is_durable(ticket)? {
    ///         woken.recv()?;
    ///     }
    /// }
    /// // Only now the client gets its reply.
    /// # Ok(())
    /// # }
    /// ```
    pub fn deferred<R>(&self, operate: impl FnOnce(&Store) -> R) -> (R, Ticket) {
        match self.inner().journal.as_ref() {
            None => (operate(self), Ticket::default()),
            Some(journal) => {
                let (result, receipt) = journal.deferred(|| operate(self));
                (result, Ticket(receipt))
            }
        }
    }

    /// Makes every write that has returned as durable as the storage allows. Only a journal opened with durability
    /// `buffered` or `process` has anything to do.
    ///
    /// # Errors
    /// [`Error::Medium`] if the sync fails, with [`crate::MediumError::Removed`] if the store's files are gone.
    pub fn sync(&self) -> Result<(), Error> {
        let engine = self.inner().engine()?;
        // This comes before the sync: with its files gone, a journal would fail, and the store could not be saved
        // elsewhere.
        if self.inner().is_removed() {
            return Err(MediumError::Removed.into());
        }
        engine.sync()
    }

    /// Returns true if results of `ticket` may be reported. Does not wait.
    ///
    /// # Errors
    /// [`Error::Medium`] once a sync has failed, unless the ticket was durable before: its writes may be lost, and no
    /// result may be reported.
    pub fn is_durable(&self, ticket: Ticket) -> Result<bool, Error> {
        let durable = self.inner().journal.as_ref().map_or(Ok(true), |journal| journal.is_durable(ticket.0));
        durable.map_err(|error| self.inner().explained(error.into()))
    }

    /// Waits until results of `ticket` may be reported.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// let (first, one) = store.deferred(|store| store.put("one", "eins"));
    /// let (second, two) = store.deferred(|store| store.put("two", "zwei"));
    /// first.and(second)?;
    /// store.wait(one.merge(two))?; // one sync for both
    /// store.wait(hikv::FrontEnd::of(&store).deferred_so_far())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Store::is_durable`].
    pub fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.inner().engine()?;
        let waited = self.inner().journal.as_ref().map_or(Ok(()), |journal| journal.wait(ticket.0));
        waited.map_err(|error| self.inner().explained(error.into()))
    }

    /// Returns a waker whose `wake` is called when tickets become durable. A thread of the store calls `wake`, which
    /// should do no more than wake another thread, for example by writing to an eventfd.
    pub fn waker(&self, wake: impl Fn() + Send + Sync + 'static) -> Waker {
        Waker(self.inner().journal.as_ref().map(|journal| journal.notifier(wake)))
    }
}
