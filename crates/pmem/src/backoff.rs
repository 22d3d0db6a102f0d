//! Waiting for another thread without an operating system's means, which `core` does not have.
//!
//! A thread that polls keeps its processor. Under real-time scheduling, or in a kernel, the awaited thread may need
//! that processor: then neither makes progress. So a waiting thread *relaxes*: it polls a few times, for locks that
//! are held for some instructions, and then calls the host's function ([`relax_by`]).

use core::hint::spin_loop;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Polls before the host is called: about a microsecond, longer than sections without a system call last.
const SPIN_COUNT: u32 = 64;

/// A host's function that lets other threads run. The argument is the number of earlier calls in the same wait. It
/// may sleep, longer with each call, and returns soon.
pub type Relax = fn(u32);

/// A [`Relax`], or null.
static HOST: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sets the function with which all waiting threads relax. A host calls this once, before it shares a store with
/// another thread. Otherwise waiting threads spin.
pub fn relax_by(host: Relax) {
    HOST.store(host as *mut (), Ordering::Release);
}

/// One wait: the number of attempts so far.
#[derive(Debug)]
pub struct Backoff {
    attempt: u32,
}

impl Backoff {
    /// Creates a wait for some instructions, unless the awaited thread was interrupted.
    #[must_use]
    pub const fn short() -> Backoff {
        Backoff { attempt: 0 }
    }

    /// Creates a wait for complete operations or disks: the host is called immediately.
    #[must_use]
    pub const fn long() -> Backoff {
        Backoff { attempt: SPIN_COUNT }
    }

    /// Like [`Backoff::long`], for a caller that counts its requests and has already made `asked`.
    #[must_use]
    pub const fn after(asked: u32) -> Backoff {
        Backoff { attempt: SPIN_COUNT.saturating_add(asked) }
    }

    /// Lets other threads run, once more.
    #[inline]
    pub fn relax(&mut self) {
        let attempt = self.attempt;
        self.attempt = attempt.saturating_add(1);
        match attempt.checked_sub(SPIN_COUNT) {
            None => spin_loop(),
            Some(asked) => ask_host(asked),
        }
    }
}

#[cold]
fn ask_host(asked: u32) {
    let host = HOST.load(Ordering::Acquire);
    if host.is_null() {
        return spin_loop();
    }
    // SAFETY: not null, so it was stored by `relax_by`, from a function of this type.
    let host = unsafe { mem::transmute::<*mut (), Relax>(host) };
    host(asked);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    static ASKED: AtomicU32 = AtomicU32::new(0);

    fn host(asked: u32) {
        assert_eq!(ASKED.swap(asked + 1, Ordering::Relaxed), asked);
    }

    #[test]
    fn host_is_polled_after_spins() {
        relax_by(host);
        let mut short = Backoff::short();
        (0..SPIN_COUNT).for_each(|_| short.relax());
        assert_eq!(ASKED.load(Ordering::Relaxed), 0);
        (0..3).for_each(|_| short.relax());
        assert_eq!(ASKED.swap(0, Ordering::Relaxed), 3);
        Backoff::long().relax();
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    }
}
