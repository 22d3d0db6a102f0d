//! Scripts: the loaded ones, and the one that is running.
//!
//! A script runs with exclusive access, as `EXEC` does, and its changes are written as one batch after its end
//! (`commands/scripting.rs`). So other clients and a crash see all of its changes, or none.
//!
//! A script begins on its client's event loop, which has little time ([`watch::LOOP_MS_MAX`]). One that takes longer is
//! stopped, and what it has done is forgotten: nothing is written yet. It then starts again as a background job, which
//! claims all keys. The loops continue: a request that needs keys waits for the script ([`Scripts::hold`]), all others
//! are executed. After `busy-reply-threshold` both get the error `BUSY`, except for the few commands that are needed to
//! end the script.

mod cache;
mod host;
mod interpreters;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use crate::shared::Shared;

pub(crate) use cache::Cache;
pub(crate) use host::ScriptHost;
pub(crate) use interpreters::{prepare, run};
pub(crate) use watch::{Kill, LoopWatch, Progress, ScriptWatch};

/// The scripts of a server.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) cache: Cache,
    pub(crate) progress: Arc<Progress>,
    /// Background jobs that run a script.
    holder_count: AtomicUsize,
    is_busy: Arc<AtomicBool>,
    /// The memory of all interpreters.
    interpreter_bytes: AtomicI64,
}

/// A background job that runs a script.
pub(crate) struct Holder<'a> {
    shared: &'a Shared,
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        let scripts = &self.shared.scripts;
        if scripts.holder_count.fetch_sub(1, Ordering::SeqCst) == 1 {
            scripts.is_busy.store(false, Ordering::SeqCst);
        }
        self.shared.mailboxes.wake_all();
    }
}

impl Scripts {
    /// Makes requests wait that a script blocks, until the holder is dropped.
    pub(crate) fn hold<'a>(&self, shared: &'a Shared) -> Holder<'a> {
        self.holder_count.fetch_add(1, Ordering::SeqCst);
        Holder { shared }
    }

    /// Returns whether a background job runs a script.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.holder_count.load(Ordering::SeqCst) > 0
    }

    /// Returns whether the running script has exceeded `busy-reply-threshold`.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::SeqCst)
    }

    /// Returns whether requests that wait for a script still have to.
    #[inline]
    pub(crate) fn holds_waiting(&self) -> bool {
        self.is_held() && !self.is_busy()
    }

    /// Returns the memory of all interpreters in bytes.
    pub(crate) fn interpreter_bytes(&self) -> i64 {
        self.interpreter_bytes.load(Ordering::Relaxed)
    }

    fn note_bytes(&self, grown_bytes: i64) {
        self.interpreter_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
    }
}
