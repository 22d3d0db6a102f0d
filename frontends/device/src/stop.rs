//! Stopping a running device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;
use parking_lot::Mutex;

/// A handle that stops a device from another thread.
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
    /// Creates a handle that is not attached to a device yet.
    #[must_use]
    pub fn new() -> StopHandle {
        StopHandle::default()
    }

    /// Stops the device: commands being executed are completed, and connections are closed. Returns immediately;
    /// [`crate::Device::run`] returns when it has stopped.
    pub fn stop(&self) {
        self.inner.is_stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.is_stopped.load(Ordering::SeqCst)
    }

    /// Registers `waker` to be woken by a stop, immediately if it has already been called.
    pub(crate) fn attach(&self, waker: Arc<Waker>) {
        self.inner.wakers.lock().push(waker);
        if self.is_stopped() {
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        // This fails only if the loop has ended.
        self.inner.wakers.lock().iter().for_each(|waker| drop(waker.wake()));
    }
}
