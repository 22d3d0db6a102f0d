//! Whether the journal still works: until a failure, or until it is closed.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use pmem::MediumError;

use crate::requests::Requests;
use crate::slots::SlotTable;

/// The end of the journal. Its waiters, which it wakes, wait for a segment or for a request.
#[derive(Debug)]
pub(crate) struct Health {
    /// The error number of the failure that ended writing, or 0.
    poison: AtomicI32,
    is_closing: AtomicBool,
    /// The result of closing, once it is done.
    closed: OnceLock<Result<(), MediumError>>,
    slots: Arc<SlotTable>,
    requests: Arc<Requests>,
}

impl Health {
    pub(crate) fn new(slots: &Arc<SlotTable>, requests: &Arc<Requests>) -> Health {
        Health {
            poison: AtomicI32::new(0),
            is_closing: AtomicBool::new(false),
            closed: OnceLock::new(),
            slots: Arc::clone(slots),
            requests: Arc::clone(requests),
        }
    }

    /// # Errors
    /// [`MediumError::Poisoned`] once something could not be written or synced.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), MediumError> {
        match self.poison.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(MediumError::Poisoned { errno }),
        }
    }

    /// Ends writing: from now on nothing becomes durable. Returns the error of the first failure. The caller does not
    /// hold the slots.
    #[cold]
    pub(crate) fn poison(&self, error: &io::Error) -> MediumError {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let first = self.poison.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Acquire);
        // Wakes threads that wait for a segment, because none will come. Threads that wait for a sync are woken
        // when the turn ends.
        self.slots.wake();
        self.requests.now();
        MediumError::Poisoned { errno: first.err().unwrap_or(errno) }
    }

    /// Makes the threads stop.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.slots.wake();
        self.requests.close();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Returns true once the threads must stop: the journal is closing or poisoned.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closing() || self.check().is_err()
    }

    pub(crate) fn note_closed(&self, result: Result<(), MediumError>) {
        let _ = self.closed.set(result);
    }

    /// Returns the result of closing; `Ok` until then.
    pub(crate) fn closed(&self) -> Result<(), MediumError> {
        self.closed.get().copied().unwrap_or(Ok(()))
    }
}
