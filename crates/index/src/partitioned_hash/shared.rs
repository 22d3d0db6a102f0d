//! Words and locks of volatile memory that threads share. This crate's own tests put others in their place (`tests/shared.rs`):
//! those of a model checker, and such as tell a test of every store.

#[cfg(not(test))]
pub(super) use native::{Lock, Locked};
#[cfg(not(test))]
pub(super) use std::sync::atomic::{AtomicBool as Flag, AtomicPtr as Pointer, AtomicU64 as Word};

#[cfg(test)]
pub(super) use super::tests::shared::{Flag, Lock, Locked, Pointer, Word};

#[cfg(not(test))]
mod native {
    use parking_lot::RawMutex;
    use parking_lot::lock_api::RawMutex as _;

    /// A lock of one byte, which guards what lies elsewhere.
    pub(in crate::partitioned_hash) struct Lock(RawMutex);

    /// A held lock.
    pub(in crate::partitioned_hash) struct Locked<'a>(&'a Lock);

    impl Lock {
        pub(in crate::partitioned_hash) const fn new() -> Lock {
            Lock(RawMutex::INIT)
        }

        #[inline(always)]
        pub(in crate::partitioned_hash) fn lock(&self) -> Locked<'_> {
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
