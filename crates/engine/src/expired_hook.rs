//! The callback that is told of keys that have expired.
//!
//! Each item that expired is told of once: by the thread that takes it out of the index, which is the reaper, a writer that does a step
//! of the reaper (`pace`), or a write to the same key that came before. A copy that compaction makes takes nothing out. `clear` tells of nothing.
//!
//! A callback that wants values gets a copy, which is made before the item goes: the item's room may be used again by the time of the call.
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

use items::Expiry;

use crate::{OnExpired, OnExpiredItem};

/// A step of a reaper calls back before it goes on, once it has copied so many bytes: values may be long.
pub const COPIED_BYTES_MAX: usize = 1 << 20;

/// The callback, if there is one.
#[derive(Default)]
pub struct ExpiredHook(Mutex<Option<Arc<Registration>>>);

/// An item that has expired, copied for the callback before it went. The value is empty unless the callback wants values.
#[derive(PartialEq, Eq, Debug)]
pub struct ExpiredItem(Box<Copied>);

#[derive(PartialEq, Eq, Debug)]
struct Copied {
    key: Box<[u8]>,
    value: Box<[u8]>,
    expiry: Expiry,
}

enum Callback {
    Key(Arc<OnExpired>),
    Item(Arc<OnExpiredItem>),
}

struct Registration {
    callback: Callback,
    /// Held, shared, while the callback runs.
    running: RwLock<()>,
    /// Another has taken its place.
    is_over: AtomicBool,
}

/// An item, and the callback that is to be told of it.
type Late = (Arc<Registration>, ExpiredItem);

thread_local! {
    /// The calls that this thread still has to make; `None` outside of a callback. A thread that ends has none: its stores may be closed
    /// behind the destructor of this list.
    static LATE: RefCell<Option<VecDeque<Late>>> = const { RefCell::new(None) };
}

/// True on a thread that is inside of a callback for an expired key, of any store. Writes of the callback do no step of a reaper: if each reported
/// key led to another one that expires, the write that called back would never return.
#[must_use]
pub fn in_expired_callback() -> bool {
    LATE.try_with(|late| late.borrow().is_some()).unwrap_or(false)
}

impl fmt::Debug for ExpiredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpiredHook")
    }
}

impl ExpiredItem {
    /// How many bytes the copy has.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.key.len() + self.0.value.len()
    }
}

impl ExpiredHook {
    /// Has this one told from now on. The callback before this one does not run any more when this returns, unless the caller is
    /// inside of such a call, whose end it cannot wait for.
    pub fn set(&self, callback: Option<Arc<OnExpired>>) {
        self.replace(callback.map(Callback::Key));
    }

    /// As [`ExpiredHook::set`], of one that wants values.
    pub fn set_item(&self, callback: Arc<OnExpiredItem>) {
        self.replace(Some(Callback::Item(callback)));
    }

    fn replace(&self, callback: Option<Callback>) {
        let registration =
            |callback| Registration { callback, running: RwLock::default(), is_over: AtomicBool::new(false) };
        let before = std::mem::replace(&mut *self.0.lock(), callback.map(registration).map(Arc::new));
        let Some(before) = before else { return };
        before.is_over.store(true, Ordering::Release);
        if !in_expired_callback() {
            drop(before.running.write());
        }
    }

    /// True if there is a callback.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }

    /// What the callback will get of an item that expired; `None` without a callback. The caller still holds what keeps the item.
    #[cold]
    #[must_use]
    pub fn copy(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Option<ExpiredItem> {
        let registration = self.0.lock().clone()?;
        let value = match &registration.callback {
            Callback::Key(_) => &[],
            Callback::Item(_) => value,
        };
        Some(ExpiredItem(Box::new(Copied { key: key.into(), value: value.into(), expiry })))
    }

    /// Tells of an item that was [copied](ExpiredHook::copy). The caller holds no lock, and no pin of its own.
    #[cold]
    pub fn notify(&self, item: ExpiredItem) {
        let Some(registration) = self.0.lock().clone() else { return };
        if in_expired_callback() {
            LATE.with_borrow_mut(|late| late.get_or_insert_default().push_back((registration, item)));
            return;
        }
        let _ = LATE.try_with(|late| late.replace(Some(VecDeque::new())));
        registration.call(&item);
        while let Ok(Some((registration, item))) = LATE.try_with(|late| next_late(&mut late.borrow_mut())) {
            registration.call(&item);
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

impl Registration {
    fn call(&self, ExpiredItem(item): &ExpiredItem) {
        // Recursive: somebody who waits for this call's end must not keep another, for which this one may wait.
        let _telling = self.running.read_recursive();
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        let Copied { key, value, expiry } = &**item;
        let _ = catch_unwind(AssertUnwindSafe(|| match &self.callback {
            Callback::Key(callback) => callback(key),
            Callback::Item(callback) => callback(key, value, *expiry),
        }));
    }
}
