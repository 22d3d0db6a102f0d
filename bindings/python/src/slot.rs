//! Handles of the library that closing the store takes away.
//!
//! # Locks
//! A thread may hold the interpreter's lock and wait for a slot's. So no thread waits for the interpreter while it
//! holds a slot: a long operation detaches first, takes the slot, gives it back, and attaches again.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::{mem, process};

use hikv::Error;
use parking_lot::{Mutex, RwLock};
use pyo3::{PyResult, Python};

use crate::errors;

/// A handle, or nothing once it was closed.
pub(crate) struct Slot<T>(RwLock<Option<T>>);

/// A slot of any handle.
trait Close: Send + Sync {
    fn close(&self);
}

impl<T> Slot<T> {
    pub(crate) fn new(handle: T) -> Slot<T> {
        Slot(RwLock::new(Some(handle)))
    }

    /// Runs `operate` with the handle, which stays until it returns.
    ///
    /// # Errors
    /// `hikv.Closed`, and those of `operate`.
    #[inline(always)]
    pub(crate) fn with<R>(&self, operate: impl FnOnce(&T) -> Result<R, Error>) -> PyResult<R> {
        raised(self.unraised(operate))
    }

    /// Like [`Slot::with`], for a caller that holds another slot and so cannot make an exception. Returns `None` once
    /// the slot is closed.
    #[inline(always)]
    pub(crate) fn unraised<R>(&self, operate: impl FnOnce(&T) -> Result<R, Error>) -> Option<Result<R, Error>> {
        self.0.read().as_ref().map(operate)
    }

    /// Like [`Slot::with`], without the interpreter's lock.
    ///
    /// # Errors
    /// As for [`Slot::with`].
    pub(crate) fn long<R: Send>(
        &self,
        py: Python<'_>,
        operate: impl FnOnce(&T) -> Result<R, Error> + Send,
    ) -> PyResult<R>
    where
        T: Send + Sync,
    {
        // The lock of the slot is taken without the interpreter's: a thread that closes the slot may wait for this one.
        py.detach(|| self.with(operate))
    }

    /// Runs `operate` with the handle, alone.
    ///
    /// # Errors
    /// As for [`Slot::with`].
    pub(crate) fn with_mut<R>(&self, operate: impl FnOnce(&mut T) -> Result<R, Error>) -> PyResult<R> {
        let done = self.0.write().as_mut().map(operate);
        raised(done)
    }

    fn take(&self) -> Option<T> {
        self.0.write().take()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.read().is_none()
    }
}

/// Makes the exception of an error, or of a closed slot. Its callers have given back the slot's lock: an exception
/// attaches to the interpreter, which another thread may hold and wait for that lock.
#[inline(always)]
fn raised<R>(done: Option<Result<R, Error>>) -> PyResult<R> {
    done.map_or_else(|| Err(errors::closed()), |done| done.map_err(errors::of))
}

impl<T: Send + Sync> Close for Slot<T> {
    fn close(&self) {
        drop(self.take());
    }
}

/// The slot of an object of Python. When the object ends, the handle is dropped under the slot's lock: a thread that
/// closes the store waits for that, or finds the slot gone with its handle.
pub(crate) struct Owned<T>(Arc<Slot<T>>);

impl<T> Deref for Owned<T> {
    type Target = Slot<T>;

    #[inline(always)]
    fn deref(&self) -> &Slot<T> {
        &self.0
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // Without a wait: a slot in use is being closed, and the closing thread drops its handle; or the thread that
        // uses it does not exist, in the child of a fork.
        if let Some(mut handle) = self.0.0.try_write() {
            *handle = None;
        }
    }
}

/// All slots of one store.
pub(crate) struct Slots {
    all: Mutex<Vec<Weak<dyn Close>>>,
    /// The process that opened the store.
    owner: u32,
}

/// The fewest slots that are looked through for dead ones.
const PRUNED_COUNT_MIN: usize = 32;

impl Slots {
    pub(crate) fn new() -> Slots {
        Slots { all: Mutex::default(), owner: process::id() }
    }

    fn is_forked(&self) -> bool {
        self.owner != process::id()
    }

    /// Takes a handle away, once no thread uses it. The child of a fork leaves a handle in use: it may not have the
    /// thread that uses it.
    pub(crate) fn take<T>(&self, slot: &Slot<T>) -> Option<T> {
        if self.is_forked() { slot.0.try_write()?.take() } else { slot.take() }
    }

    /// Returns a slot that [`Slots::close`] empties. The caller has the slot from which the handle was made.
    pub(crate) fn add<T: Send + Sync + 'static>(&self, handle: T) -> Owned<T> {
        let slot = Arc::new(Slot::new(handle));
        let mut slots = self.all.lock();
        if slots.len() == slots.capacity() && slots.len() >= PRUNED_COUNT_MIN {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        let any: Arc<dyn Close> = slot.clone();
        slots.push(Arc::downgrade(&any));
        Owned(slot)
    }

    /// Empties all slots, the latest first. A slot that is added at the same time was made from one of them, before it
    /// was emptied. Does nothing in the child of a fork, where calls raise `hikv.Forked` anyway.
    pub(crate) fn close(&self) {
        while !self.is_forked() {
            let slots = mem::take(&mut *self.all.lock());
            if slots.is_empty() {
                break;
            }
            slots.iter().rev().filter_map(Weak::upgrade).for_each(|slot| slot.close());
        }
    }
}
