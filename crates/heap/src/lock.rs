//! A lock, because `core` has none. Critical sections are short. Exceptions: the superblock and a lane may be locked
//! while the region grows and waits for the operating system (`region.rs`, `lane.rs`). A thread may also be
//! descheduled in any section, so a waiting thread lets other threads run (`pmem::Backoff`).

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

use pmem::Backoff;

/// A value that one thread at a time can use. All-zero bytes are an unlocked lock if they are a valid `T`.
pub(crate) struct Spin<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time, which is what sending it would do.
unsafe impl<T: Send> Sync for Spin<T> {}

impl<T> Spin<T> {
    pub(crate) const fn new(value: T) -> Spin<T> {
        Spin { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Locks the value, or returns `None` if another thread has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        let free = !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire);
        free.then(|| Guard { lock: self, not_shared: PhantomData })
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let mut backoff = Backoff::short();
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            backoff.relax();
        }
    }

    /// Returns the value without locking; the exclusive borrow proves that no other thread has it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The value while it is locked.
pub(crate) struct Guard<'a, T> {
    lock: &'a Spin<T>,
    /// A guard gives out `&T`, for which `T: Send` is not sufficient.
    not_shared: PhantomData<*mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one of its lock, and borrowed shared.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one of its lock, and borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
