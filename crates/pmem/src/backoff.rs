//! Waiting for another thread that is not waited for by the operating system's means, which `core` does not have.
//!
//! A thread that looks again and again keeps its processor. Under real-time scheduling, or in a kernel, that may be the
//! processor which the other thread needs to go on: then both stand still. So a waiting thread *relaxes*: a few looks one after the
//! other, for locks that are held for some instructions, and from then on whatever the host has for it ([`relax_by`]).

use core::hint::spin_loop;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Looks before the host is asked: about a microsecond, longer than sections without a system call take.
const SPIN_COUNT: u32 = 64;

/// How a host lets others run: is told how often the caller has asked before in the same wait. It may sleep, the longer
/// the more often it was asked, and returns soon.
pub type Relax = fn(u32);

/// A [`Relax`], or null.
static HOST: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// From now on all waiting threads relax so. A host calls this once, before it shares a store with another thread; without it
/// waiting is spinning.
pub fn relax_by(host: Relax) {
    HOST.store(host as *mut (), Ordering::Release);
}

/// One wait: what was tried so far.
#[derive(Debug)]
pub struct Backoff {
    attempt: u32,
}

impl Backoff {
    /// For a wait of some instructions, unless the awaited thread was interrupted.
    #[must_use]
    pub const fn short() -> Backoff {
        Backoff { attempt: 0 }
    }

    /// For whole operations, and disks: the host is asked at once.
    #[must_use]
    pub const fn long() -> Backoff {
        Backoff { attempt: SPIN_COUNT }
    }

    /// As [`Backoff::long`], for a caller that counts its requests and has made so many.
    #[must_use]
    pub const fn after(asked: u32) -> Backoff {
        Backoff { attempt: SPIN_COUNT.saturating_add(asked) }
    }

    /// Lets others run, once more.
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
    fn the_host_is_asked_after_some_looks_or_at_once() {
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
