//! The lock of the root's word, in stripes. Every operation shares it, so one word would move between the processors
//! with each operation.
//!
//! A thread that shares the lock locks one stripe, shared. A thread that wants exclusive access locks all stripes, in
//! ascending order, exclusively. So it excludes the threads of each stripe, and two such threads exclude each other at
//! the first stripe. A thread that shares a stripe locks no further one, so the order is complete.
//!
//! A stripe is chosen by the address of the caller's stack, which differs between threads; any choice is correct. Two
//! threads with the same stripe are as slow as with one word.

use core::ptr;
use core::slice;
use core::sync::atomic::AtomicU64;

use heap::HeapError;
use pmem::{Dram, DramBox};

use crate::Error;
use crate::locks::latch::{Latch, Mode, WaitPolicy};

/// Locking all of them takes about half a microsecond, once per split.
const STRIPE_COUNT: usize = 16;

/// The binary logarithm of a page's bytes: stacks are at least a page apart.
const PAGE_SHIFT: u32 = 12;

/// 0.5698 of 2^64: multiples of usual distances between stacks, in pages, are far apart modulo 2^64.
const SPREAD: u64 = 0x91e1_0da5_c79e_7800;

/// Two lines, because processors prefetch lines in pairs.
#[repr(align(128))]
struct Stripe(Latch<AtomicU64>);

type Stripes = [Stripe; STRIPE_COUNT];

/// The lock of a tree's root.
pub(crate) struct TreeLock<D: Dram> {
    stripes: DramBox<Stripes, D>,
}

impl<D: Dram> TreeLock<D> {
    /// Creates the lock, free.
    pub(crate) fn new(dram: D) -> Result<TreeLock<D>, HeapError> {
        // SAFETY: zeros are free stripes.
        let stripes = unsafe { DramBox::<Stripes, D>::zeroed(dram) };
        Ok(TreeLock { stripes: stripes.ok_or(HeapError::NoDram { wanted_bytes: size_of::<Stripes>() })? })
    }

    /// Locks.
    #[inline]
    pub(crate) fn lock(&self, mode: Mode, wait_policy: WaitPolicy) -> Result<HeldTree<'_>, Error> {
        let stripes = match mode {
            Mode::Shared => slice::from_ref(&self.stripes[own_stripe()]),
            Mode::Exclusive => &self.stripes[..],
        };
        let mut held = HeldTree { stripes: &[], mode };
        for (i, stripe) in stripes.iter().enumerate() {
            stripe.0.lock(mode, wait_policy)?;
            held.stripes = &stripes[..=i];
        }
        Ok(held)
    }
}

/// Returns the number of the calling thread's stripe.
#[inline]
fn own_stripe() -> usize {
    let local = 0_u8;
    let page = (ptr::from_ref(&local).addr() >> PAGE_SHIFT) as u64;
    (page.wrapping_mul(SPREAD) >> (u64::BITS - STRIPE_COUNT.ilog2())) as usize
}

/// The tree lock, held.
#[must_use = "a lock that is dropped is free"]
pub(crate) struct HeldTree<'a> {
    stripes: &'a [Stripe],
    mode: Mode,
}

impl HeldTree<'_> {
    #[inline]
    pub(crate) fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }
}

impl Drop for HeldTree<'_> {
    #[inline]
    fn drop(&mut self) {
        self.stripes.iter().for_each(|stripe| stripe.0.unlock(self.mode));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::thread;
    use std::vec::Vec;

    use pmem_sim::SimDram;

    use super::*;

    fn try_lock(lock: &TreeLock<SimDram>, mode: Mode) -> Result<HeldTree<'_>, Error> {
        // A weak exchange may fail spuriously.
        (0..100).map(|_| lock.lock(mode, WaitPolicy::Try)).find_map(Result::ok).ok_or(Error::WouldWait)
    }

    #[test]
    fn sharing_and_exclusive_access_exclude_each_other() {
        let lock = TreeLock::new(SimDram).unwrap();
        let shared = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| try_lock(&lock, Mode::Shared).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for held in shared {
            assert!(try_lock(&lock, Mode::Exclusive).is_err(), "one thread still shares the lock");
            drop(held);
        }
        let alone = try_lock(&lock, Mode::Exclusive).unwrap();
        assert!(alone.is_exclusive() && try_lock(&lock, Mode::Shared).is_err());
        assert!(try_lock(&lock, Mode::Exclusive).is_err());
        drop(alone);
        assert!(!try_lock(&lock, Mode::Shared).unwrap().is_exclusive());
    }
}
