//! The threads that sync for callers which do not wait: for event loops, which they wake, and at intervals for writes that no
//! caller asks about. There is one for each lane (`turns`), so that a request that comes during a sync need not wait for its end.
//!
//! An asker is woken after every sync until all that it asked for is durable: of several receipts the first ones are then told as
//! early as they can be. A sync takes in whatever was appended before its beginning, so all loops share one.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use pmem::MediumError;

use crate::File;
use crate::journal::Journal;
use crate::receipt::{Acknowledger, Receipt};
use crate::requests::Asker;

/// Syncs until the journal is closed or poisoned.
pub(crate) fn sync<F: File>(journal: &Journal<F>) {
    let requests = &journal.requests;
    while let Some(taken) = requests.next() {
        fence(Ordering::SeqCst);
        let end = journal.append.appended.load(Ordering::Acquire).max(requests.asked());
        let synced = journal.wait_synced(end);
        requests.end(taken);
        requests.wake(journal.append.synced.load(Ordering::Acquire));
        if synced.is_err() {
            return;
        }
    }
    requests.wake(journal.append.synced.load(Ordering::Acquire));
}

/// Wakes one event loop when the log has become more durable; dropped, it does not any more.
#[derive(Debug)]
pub struct Notifier<F: File> {
    journal: Acknowledger<F>,
    asker: Arc<Asker>,
}

impl<F: File> Acknowledger<F> {
    /// Calls `wake` when something becomes durable that was asked for. It is called by the journal's thread, and should do no
    /// more than wake another one.
    pub fn notifier(&self, wake: impl Fn() + Send + Sync + 'static) -> Notifier<F> {
        Notifier { journal: self.clone(), asker: self.journal().requests.add_asker(wake) }
    }
}

impl<F: File> Notifier<F> {
    /// True if results of `receipt` may be told. If not, the log is synced in the background, and `wake` called at least once
    /// after that; before, too, if parts of it become durable. A woken caller asks `is_durable`.
    ///
    /// What must be in the operating system's hands is given to it by this call.
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
        journal.requests.now();
        // The thread may have ended since, and not have seen whom to wake.
        self.journal.is_durable(receipt)
    }
}

impl<F: File> Drop for Notifier<F> {
    fn drop(&mut self) {
        self.journal.journal().requests.remove_asker(&self.asker);
    }
}
