//! The frame of each call: no panic leaves it, and none runs inside a reading callback.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code;
use crate::failure::Failure;
use crate::handle::OfStore;

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call that has no store.
pub(crate) fn run(call: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    caught(call).unwrap_or_else(Failure::report)
}

/// Runs a call on a handle that reaches the engine, which refuses it after a fork.
#[inline(always)]
pub(crate) fn on<H: OfStore>(handle: Result<&H, Failure>, call: impl FnOnce(&H) -> Result<c_int, Failure>) -> c_int {
    let done = handle.and_then(|handle| {
        handle.store().check()?;
        caught(|| call(handle)).inspect_err(|failure| {
            if failure.code == code::PANIC {
                handle.store().break_off();
            }
        })
    });
    done.unwrap_or_else(Failure::report)
}

/// Like [`on`], for calls that may not reach the engine.
pub(crate) fn on_own<H: OfStore>(
    handle: Result<&H, Failure>,
    call: impl FnOnce(&H) -> Result<c_int, Failure>,
) -> c_int {
    on(handle, |handle| {
        handle.store().check_fork()?;
        call(handle)
    })
}

/// Frees the content of a handle, if there is one.
///
/// # Safety
/// `handle` is null, or comes from [`Box::into_raw`] and was not freed.
pub(crate) unsafe fn free<H>(handle: *mut H) {
    if !handle.is_null() {
        // SAFETY: as this function's.
        let content = unsafe { Box::from_raw(handle) };
        // The function has no result for a panic, which was printed.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(content)));
    }
}

#[inline(always)]
fn caught(call: impl FnOnce() -> Result<c_int, Failure>) -> Result<c_int, Failure> {
    if IS_READING.get() {
        return Err(Failure::new(code::INSIDE_CALLBACK, "no call can be made inside a callback that reads a value"));
    }
    // Nothing uses the state after a panic: the store refuses all further calls.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}

/// Runs a callback of the caller that reads a value in place.
pub(crate) fn reading<R>(callback: impl FnOnce() -> R) -> R {
    IS_READING.set(true);
    let result = callback();
    IS_READING.set(false);
    result
}
