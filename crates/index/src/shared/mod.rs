//! Words and locks of volatile memory that threads share. This crate's own tests put others in their place (`word_model::chosen`):
//! those of a model checker, and such as tell a test of every store. Crate `word` says why they are named here, and are no parameter.

#[cfg(not(test))]
pub(crate) use native::{Lock, Locked};
#[cfg(not(test))]
pub(crate) use std::sync::atomic::{AtomicBool as Flag, AtomicPtr as Pointer, AtomicU64 as Word};

#[cfg(test)]
pub(crate) use word_model::chosen::{Flag, Lock, Locked, Pointer, Word};

mod native {
    use parking_lot::RawMutex;
    use parking_lot::lock_api::RawMutex as _;

    /// A lock of one byte, which guards what lies elsewhere.
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

        /// The lock, unless it is held.
        #[inline(always)]
        pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
            // Lazily: what is made and dropped unlocks, whoever holds it.
            self.0.try_lock().then(|| Locked(self))
        }
    }

    impl Drop for Locked<'_> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: `lock` locked it, and this is the only guard.
            unsafe { self.0.0.unlock() }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::Lock;

        #[test]
        fn a_thread_that_does_not_get_a_lock_leaves_it_locked() {
            let lock = Lock::new();
            let held = lock.lock();
            assert!(lock.try_lock().is_none());
            assert!(lock.try_lock().is_none(), "the first try unlocked it");
            drop(held);
            let got = lock.try_lock();
            assert!(got.is_some() && lock.try_lock().is_none());
        }
    }
}
