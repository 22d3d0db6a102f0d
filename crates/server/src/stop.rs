use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mio::Waker;

/// Stops a running server from another thread.
#[derive(Debug, Clone, Default)]
pub struct StopHandle {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stopped: AtomicBool,
    wakers: Mutex<Vec<Arc<Waker>>>,
}

impl StopHandle {
    /// A handle to give to [`crate::Server::run`].
    pub fn new() -> StopHandle {
        StopHandle::default()
    }

    /// Stops the server gracefully: requests that have arrived are answered, then connections are closed. Returns at
    /// once; [`crate::Server::run`] returns when it is done.
    pub fn stop(&self) {
        self.inner.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Whether [`StopHandle::stop`] has been called.
    pub fn is_stopped(&self) -> bool {
        self.inner.stopped.load(Ordering::SeqCst)
    }

    /// Has `waker` woken by a stop, at once if that came first.
    pub(crate) fn attach(&self, waker: Arc<Waker>) {
        self.inner.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        if self.is_stopped() {
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        for waker in self.inner.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // The only failure is a loop that is gone already.
            let _ = waker.wake();
        }
    }
}
