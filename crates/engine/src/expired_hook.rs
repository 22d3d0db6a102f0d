//! The callback that is told of keys that have expired.
//!
//! Each item that expired is told of once: by the thread that takes it out of the index, which is the reaper, or a write to the
//! same key that came before. A copy that compaction makes takes nothing out. `clear` tells of nothing.
//!
//! # When
//! At the end of the operation, which has filled its tickets and holds neither a lock nor a pin. So the callback may use the store
//! as any caller does, scans and `clear` included, and a slow one keeps no garbage. Another key that is taken out meanwhile by the
//! same thread is told of when the first call has returned: calls never nest, however long the chain.
//!
//! A call that panics is caught: the write is done, and its caller need not be the one that set the callback. Rust's panic hook has
//! said so by then. Later keys are told of as before.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::OnExpired;

/// The callback, if there is one.
#[derive(Default)]
pub struct ExpiredHook(Mutex<Option<Arc<Told>>>);

struct Told {
    callback: Arc<OnExpired>,
    /// Held, shared, while the callback runs.
    telling: RwLock<()>,
    /// Another has taken its place.
    is_over: AtomicBool,
}

/// A key, and the callback that is to be told of it.
type Late = (Arc<Told>, Box<[u8]>);

thread_local! {
    /// What this thread has still to tell; `None` unless it is telling.
    static LATE: RefCell<Option<VecDeque<Late>>> = const { RefCell::new(None) };
}

impl fmt::Debug for ExpiredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpiredHook")
    }
}

impl ExpiredHook {
    /// Has this one told from now on. The callback before this one does not run any more when this returns, unless the caller is
    /// inside of such a call, whose end it cannot wait for.
    pub fn set(&self, callback: Option<Arc<OnExpired>>) {
        let told = |callback| Told { callback, telling: RwLock::default(), is_over: AtomicBool::new(false) };
        let before = std::mem::replace(&mut *self.0.lock(), callback.map(told).map(Arc::new));
        let Some(before) = before else { return };
        before.is_over.store(true, Ordering::Release);
        if !LATE.with_borrow(Option::is_some) {
            drop(before.telling.write());
        }
    }

    /// True if there is a callback.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Tells of a key. The caller holds no lock, and no pin of its own.
    #[cold]
    pub fn tell(&self, key: &[u8]) {
        let Some(told) = self.0.lock().clone() else { return };
        let is_inside = LATE.with_borrow_mut(|late| match late {
            Some(late) => {
                late.push_back((Arc::clone(&told), key.into()));
                true
            }
            None => {
                *late = Some(VecDeque::new());
                false
            }
        });
        if is_inside {
            return;
        }
        told.tell(key);
        while let Some((told, key)) = LATE.with_borrow_mut(next_late) {
            told.tell(&key);
        }
    }
}

/// The next that is late; without one the thread tells no more.
fn next_late(late: &mut Option<VecDeque<Late>>) -> Option<Late> {
    let next = late.as_mut()?.pop_front();
    if next.is_none() {
        *late = None;
    }
    next
}

impl Told {
    fn tell(&self, key: &[u8]) {
        // Recursive: somebody who waits for this call's end must not keep another, for which this one may wait.
        let _telling = self.telling.read_recursive();
        if !self.is_over.load(Ordering::Acquire) {
            let _ = catch_unwind(AssertUnwindSafe(|| (self.callback)(key)));
        }
    }
}
