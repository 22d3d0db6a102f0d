//! Writes at levels of their own, and writes whose durability is waited for later.
//!
//! Both are scopes of the calling thread: whatever it does to the store inside of one, with any method, counts. So a single
//! write, a batch or a whole program of reads and writes can ask for another level, and an event loop needs no second
//! version of its commands.

use journal::{Notifier, OsFile, Receipt};
use pmem::Durability;

use crate::{Error, Store};

/// What has to become durable before the results of some operations may be told; see [`Store::deferred`]. It belongs to one
/// opening of one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Ticket(Receipt);

impl Ticket {
    /// A ticket for both.
    pub fn merge(self, other: Ticket) -> Ticket {
        Ticket(self.0.merge(other.0))
    }
}

/// Wakes an event loop; see [`Store::waker`].
#[derive(Debug)]
pub struct Waker(Option<Notifier<OsFile>>);

impl Waker {
    /// True if results of `ticket` may be told now. If not, a thread of the store makes them durable, together with those of
    /// everybody else, and calls the waker at least once when they are; also before, whenever something that was asked for
    /// has become durable. Ask [`Store::is_durable`] then.
    ///
    /// # Errors
    /// As for [`Store::is_durable`].
    pub fn request(&self, ticket: Ticket) -> Result<bool, Error> {
        Ok(self.0.as_ref().map_or(Ok(true), |notifier| notifier.request(ticket.0))?)
    }
}

impl Store {
    /// What writes survive here unless they ask for something else.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.identity().durability
    }

    /// The most that a write can ask for. A journal gives `power`, at whatever level it was opened.
    #[must_use]
    pub fn durability_max(&self) -> Durability {
        if self.journal().is_some() { Durability::Power } else { self.durability() }
    }

    /// Runs `operate`, and returns when everything that it wrote to this store, and read from it, survives what `level` says. That
    /// is waited for once, at its end, so several writes share it; other threads see the writes before, and wait for them in reads
    /// at the store's own level, where that is higher.
    ///
    /// On a medium that gives more for nothing (DAX, tmpfs) a lower level makes no difference. On a journal `power` is a write
    /// that the disk has synced, with all that came before it; `buffered` one that the kernel has, and whose sync begins
    /// within [`crate::Options::sync_interval`], unless older ones have waited for two of these: then it is one at `power`;
    /// `process` one that the kernel has, synced when a caller asks for more.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir_in(".")?;
    /// use hikv::{Durability, Error, Store};
    ///
    /// let store = Store::open(dir.path())?; // on a disk: a journal
    /// store.at(Durability::Buffered, |store| store.put("clicks", "1"))?;
    /// store.at(Durability::Power, |store| {
    ///     store.put("order:1", "paid")?;
    ///     store.delete("cart:1").map(drop)
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Durability`] if the medium does not give that much, and nothing was done; what `operate` returns; the
    /// medium's, if it fails while it makes durable what was done.
    pub fn with_durability<R, E: From<Error>>(
        &self,
        level: Durability,
        operate: impl FnOnce(&Store) -> Result<R, E>,
    ) -> Result<R, E> {
        self.engine()?;
        let given = self.durability_max();
        if level > given {
            return Err(Error::Durability { wanted: level, given, medium: self.identity().medium }.into());
        }
        match self.journal() {
            None => operate(self),
            Some(journal) => {
                let (result, durable) = journal.at(level, || operate(self));
                let result = result?;
                durable.map_err(|error| self.explained(error.into()))?;
                Ok(result)
            }
        }
    }

    /// Runs `operate` without waiting for a disk, and returns a ticket with its result: before the ticket is durable nobody
    /// may be told of the result, since a crash might take back what was written, or what was read.
    ///
    /// For event loops, which serve others meanwhile. What `operate` writes can be seen by everybody when it returns. Other
    /// threads that meet such a write wait, or, when deferring, too, have it in their own ticket; once durable it costs
    /// nobody anything. [`Store::with_durability`] inside of `operate` does not wait, but changes what the ticket stands for.
    ///
    /// Few things still wait for the disk: [`Store::clear`]; a write that makes the file longer, or finds the whole log
    /// waiting for a checkpoint, or fills a part of the log; and one whose segment of the index has to be split while keys
    /// in it were just deleted.
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
    /// if !waker.ask(ticket)? {
    ///     while !store.is_durable(ticket)? {
    ///         woken.recv()?;
    ///     }
    /// }
    /// // Only now the client gets its answer.
    /// # Ok(())
    /// # }
    /// ```
    pub fn deferred<R>(&self, operate: impl FnOnce(&Store) -> R) -> (R, Ticket) {
        match self.journal() {
            None => (operate(self), Ticket::default()),
            Some(journal) => {
                let (result, receipt) = journal.deferred(|| operate(self));
                (result, Ticket(receipt))
            }
        }
    }

    /// A ticket for everything that was deferred so far, by any thread: for a thread that passes on what another one said while it
    /// deferred. Quick.
    pub fn deferred_so_far(&self) -> Ticket {
        self.journal().map_or_else(Ticket::default, |journal| Ticket(journal.deferred_so_far()))
    }

    /// True if results of `ticket` may be told. Quick.
    ///
    /// # Errors
    /// The medium's, once it has failed, unless the ticket was durable before: what it stands for may be lost, and no result of
    /// it may be told.
    pub fn is_durable(&self, ticket: Ticket) -> Result<bool, Error> {
        let durable = self.journal().map_or(Ok(true), |journal| journal.is_durable(ticket.0));
        durable.map_err(|error| self.explained(error.into()))
    }

    /// Waits until results of `ticket` may be told.
    ///
    /// # Errors
    /// As for [`Store::is_durable`].
    pub fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.engine()?;
        let waited = self.journal().map_or(Ok(()), |journal| journal.wait(ticket.0));
        waited.map_err(|error| self.explained(error.into()))
    }

    /// Something to be woken by when tickets become durable. `wake` is called by a thread of the store, and should do no more
    /// than wake another one: write to an eventfd, say.
    pub fn waker(&self, wake: impl Fn() + Send + Sync + 'static) -> Waker {
        Waker(self.journal().map(|journal| journal.notifier(wake)))
    }
}
