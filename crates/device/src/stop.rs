//! Stopping a device that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;
use parking_lot::Mutex;

/// Stops a device from another thread.
#[derive(Debug, Clone, Default)]
pub struct StopHandle {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    is_stopped: AtomicBool,
    wakers: Mutex<Vec<Arc<Waker>>>,
}

impl StopHandle {
    /// A handle of no device yet.
    #[must_use]
    pub fn new() -> StopHandle {
        StopHandle::default()
    }

    /// Stops the device: commands that have begun are carried out, and connections are closed. Returns at once;
    /// [`crate::Device::run`] returns when it is done.
    pub fn stop(&self) {
        self.inner.is_stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.is_stopped.load(Ordering::SeqCst)
    }

    /// Has `waker` woken by a stop, at once if that came first.
    pub(crate) fn attach(&self, waker: Arc<Waker>) {
        self.inner.wakers.lock().push(waker);
        if self.is_stopped() {
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        // The only failure is a loop that is gone already.
        self.inner.wakers.lock().iter().for_each(|waker| drop(waker.wake()));
    }
}
