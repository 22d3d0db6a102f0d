//! The threads that sync for callers which do not wait: for event loops, which they wake, and at intervals for
//! writes for which no caller waits. There is one thread per lane (`turns`), so that a request during a sync need
//! not wait for its end.
//!
//! An asker is woken after every sync until everything that it requested is durable: then it can report the first
//! of several receipts as early as possible. A sync covers everything appended before it began, so all loops share
//! one.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use pmem::MediumError;

use crate::File;
use crate::log::Log;
use crate::receipt::{Acknowledger, Receipt};
use crate::requests::LoopWaiter;

/// Syncs until the journal is closed or poisoned.
pub(crate) fn sync<F: File>(log: &Log<F>) {
    let requests = log.requests();
    while let Some(taken) = requests.next() {
        fence(Ordering::SeqCst);
        let end = log.appender().appended().max(requests.asked());
        let synced = log.wait_synced(end);
        requests.end(taken);
        requests.wake(log.durable().synced());
        if synced.is_err() {
            return;
        }
    }
    requests.wake(log.durable().synced());
}

/// Wakes one event loop when the log has become more durable, until the notifier is dropped.
#[derive(Debug)]
pub struct Notifier<F: File> {
    journal: Acknowledger<F>,
    asker: Arc<LoopWaiter>,
}

impl<F: File> Acknowledger<F> {
    /// Creates a notifier that calls `wake` when requested entries become durable. The journal's thread calls it;
    /// it should only wake another thread.
    pub fn notifier(&self, wake: impl Fn() + Send + Sync + 'static) -> Notifier<F> {
        Notifier { journal: self.clone(), asker: self.journal().log.requests().add_loop_waiter(wake) }
    }
}

impl<F: File> Notifier<F> {
    /// Returns true if the results of `receipt` may be reported. If not, the log is synced in the background, and
    /// `wake` is called at least once after that, and possibly before, if parts become durable. A woken caller
    /// calls `is_durable`.
    ///
    /// Entries that the operating system must have are written by this call.
    ///
    /// # Errors
    /// [`MediumError::Poisoned`].
    pub fn request(&self, receipt: Receipt) -> Result<bool, MediumError> {
        let journal = self.journal.journal();
        self.journal.wait(receipt.without_syncs())?;
        if self.journal.is_durable(receipt)? {
            return Ok(true);
        }
        if !journal.options.background {
            self.journal.wait(receipt)?;
            return Ok(true);
        }
        self.asker.ask(receipt.synced_position());
        journal.log.requests().now();
        // The thread may have ended since, without seeing this asker.
        self.journal.is_durable(receipt)
    }
}

impl<F: File> Drop for Notifier<F> {
    fn drop(&mut self) {
        self.journal.journal().log.requests().remove_asker(&self.asker);
    }
}
