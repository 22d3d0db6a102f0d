//! The callback for expired keys.
//!
//! Each expired item is reported once, by the thread that removes it from the index: the reaper, a writer that does a
//! step of the reaper (`pace`), or an earlier write to the same key. Moving an item by compaction is not a removal.
//! `clear` reports nothing.
//!
//! A callback that needs values receives a copy made before the item is removed, because the item's slot may be reused
//! by the time of the call.
//!
//! # Time of the call
//! The call comes at the end of the operation, when its tickets are filled and no lock, pin, window or gate lock is
//! held. So the callback may use the store like any caller, including scans, transactions and `clear`, and a slow
//! callback keeps no garbage. If the same thread removes another expired key during the call, that key is reported
//! after the first call has returned: calls never nest, whatever the length of the chain. A removal while the thread is
//! inside a write (crate `transact`) is reported by [`report_late`], which the owner of the write calls after its end.
//!
//! A panic of the callback is caught: the write is done, and its caller may not be the one that registered the
//! callback. Rust's panic hook has reported the panic by then. Later keys are reported as before.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use items::Expiry;

use crate::{OnExpired, OnExpiredItem, Outcome, PriorState, WriteResult};

/// A step of a reaper calls back before it continues once it has copied this many bytes, because values may be long.
pub const COPIED_BYTES_MAX: usize = 1 << 20;

/// The registered callback, if there is one.
#[derive(Default)]
pub struct ExpiredHook(Mutex<Option<Arc<Registration>>>);

/// A copy of an expired item, made before the item was removed. The value is empty unless the callback needs values.
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
    /// Held shared while the callback runs.
    running: RwLock<()>,
    /// Another callback has replaced this one.
    is_over: AtomicBool,
}

/// An item with the callback that is to receive it.
type Late = (Arc<Registration>, ExpiredItem);

thread_local! {
    /// The calls that this thread has yet to make. A thread that is ending has no list: its stores may be closed after
    /// the destructor of this value.
    static LATE: RefCell<VecDeque<Late>> = const { RefCell::new(VecDeque::new()) };
    /// The thread is inside a callback.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
    /// The list has calls for [`report_late`]. Read after every write, so it has no destructor.
    static IS_LATE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that is inside a callback for an expired key, of any store. Writes of the callback do no
/// step of a reaper: if each reported key led to another key that expires, the write that called back would never
/// return.
#[must_use]
pub fn in_expired_callback() -> bool {
    IS_CALLING.get()
}

/// Reports the items that the calling thread has removed within a write that has ended. Costs a load if there are none.
#[inline(always)]
pub fn report_late() {
    if IS_LATE.get() {
        call_late();
    }
}

/// Makes the calls of the list, unless the thread is inside a callback or a write, whose owner makes them.
#[cold]
fn call_late() {
    if IS_CALLING.get() || transact::is_writing() {
        return;
    }
    IS_CALLING.set(true);
    while let Ok(Some((registration, item))) = LATE.try_with(|late| late.borrow_mut().pop_front()) {
        registration.call(&item);
    }
    IS_CALLING.set(false);
    IS_LATE.set(false);
}

impl fmt::Debug for ExpiredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExpiredHook")
    }
}

impl ExpiredItem {
    /// Returns the number of bytes of the copy.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.key.len() + self.0.value.len()
    }
}

impl ExpiredHook {
    /// Registers a callback. The earlier callback no longer runs when this returns, unless the caller is inside such a
    /// call, whose end it cannot wait for.
    pub fn set(&self, callback: Option<Arc<OnExpired>>) {
        self.replace(callback.map(Callback::Key));
    }

    /// As [`ExpiredHook::set`], for a callback that needs values.
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

    /// Returns true if there is a callback.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Returns a copy of an expired item for the callback; `None` without a callback. The caller still holds the lock
    /// or pin that keeps the item.
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

    /// Reports the item that had expired before a write, if there is one, and returns the write's answer. The caller
    /// holds no lock and no pin of its own.
    #[inline]
    pub fn report<N>(&self, Outcome { answer, expired }: Outcome<N>) -> WriteResult<PriorState, N> {
        expired.into_iter().for_each(|item| self.notify(item));
        answer
    }

    /// Reports an item that was [copied](ExpiredHook::copy). The caller holds no lock and no pin of its own.
    #[cold]
    pub fn notify(&self, item: ExpiredItem) {
        let Some(registration) = self.0.lock().clone() else { return };
        let mut call = Some((registration, item));
        let _ = LATE.try_with(|late| late.borrow_mut().extend(call.take()));
        match call {
            None => {
                IS_LATE.set(true);
                call_late();
            }
            Some((registration, item)) => registration.call(&item),
        }
    }
}

impl Registration {
    fn call(&self, ExpiredItem(item): &ExpiredItem) {
        // Recursive: a thread that waits for the end of this call must not block another call, for which this one may
        // wait.
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
