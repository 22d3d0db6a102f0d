//! Words and locks in DRAM that threads share. The crate's own tests replace them (`word::model::chosen`) by those
//! of a model checker, or by some that notify a test of every store. Crate `word` explains why they are named here
//! and are not a type parameter.

mod locks;

#[cfg(not(test))]
pub(crate) use locks::{HeldLocks, Locks};
#[cfg(not(test))]
pub(crate) use native::{Lock, Locked};
#[cfg(not(test))]
pub(crate) use std::sync::atomic::{AtomicBool as Flag, AtomicPtr as Pointer, AtomicU64 as Word};

#[cfg(test)]
pub(crate) use word::model::chosen::{Flag, HeldLocks, Lock, Locked, Locks, Pointer, Word};

#[cfg(not(test))]
mod native {
    use parking_lot::RawMutex;
    use parking_lot::lock_api::RawMutex as _;

    /// A lock of one byte, which guards data elsewhere.
    pub(crate) struct Lock(RawMutex);

    /// A held lock.
    pub(crate) struct Locked<'a>(&'a Lock);

    impl Lock {
        pub(crate) const fn new() -> Lock {
            Lock(RawMutex::INIT)
        }

        #[inline(always)]
        pub(crate) fn lock(&self) -> Locked<'_> {
            self.0.lock();
            Locked(self)
        }
    }

    impl Drop for Locked<'_> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: `lock` locked it, and this is the only guard.
            unsafe { self.0.0.unlock() }
        }
    }
}
