use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mio::Waker;

/// A handle that stops a running server from another thread.
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
    /// Creates a handle for [`crate::Server::run`].
    pub fn new() -> StopHandle {
        StopHandle::default()
    }

    /// Stops the server gracefully: received requests are answered, then connections are closed. Returns immediately;
    /// [`crate::Server::run`] returns when the server has stopped.
    pub fn stop(&self) {
        self.inner.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Returns whether [`StopHandle::stop`] has been called.
    pub fn is_stopped(&self) -> bool {
        self.inner.stopped.load(Ordering::SeqCst)
    }

    /// Registers `waker` to be woken by a stop, immediately if it has already been called.
    pub(crate) fn attach(&self, waker: Arc<Waker>) {
        self.inner.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        if self.is_stopped() {
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        for waker in self.inner.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // This fails only if the loop has ended.
            let _ = waker.wake();
        }
    }
}
