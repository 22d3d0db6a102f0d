//! Locks of neighbours, one bit each of the same word. A thread takes several with one locked instruction, and
//! releases them with another.
//!
//! # Why this is sound
//! A call takes all of its bits in one step, or none. Bits are set with Acquire and cleared with Release, in one
//! word that only read-modify-write instructions change. So a thread that locks sees everything done by all threads
//! that held any of those bits before. The model below verifies this.
//!
//! # Waiting
//! A waiting thread tries again and again, lets other threads run in between (`pmem::Backoff`), and holds none of
//! the call's bits.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Backoff;
use word::Word;

/// As many locks as a word has bits.
pub(crate) struct Locks<W: Word = AtomicU64>(W);

/// Some of the locks, held.
pub(crate) struct HeldLocks<'a, W: Word = AtomicU64> {
    locks: &'a Locks<W>,
    bits: u64,
}

impl<W: Word> Locks<W> {
    pub(crate) fn new() -> Locks<W> {
        Locks(W::new(0))
    }

    /// Waits for the locks of these numbers, and takes all in one step.
    #[inline(always)]
    pub(crate) fn lock<const COUNT: usize>(&self, numbers: [usize; COUNT]) -> HeldLocks<'_, W> {
        let bits = bits_of(numbers);
        self.take(bits).unwrap_or_else(|| self.wait_for(bits, Backoff::relax))
    }

    /// Takes the locks of these numbers, unless another thread holds one of them.
    #[inline(always)]
    pub(crate) fn try_lock<const COUNT: usize>(&self, numbers: [usize; COUNT]) -> Option<HeldLocks<'_, W>> {
        self.take(bits_of(numbers))
    }

    /// Takes the locks of all numbers below `count`, one after the other; it holds the earlier ones while it waits.
    pub(crate) fn lock_in_turn(&self, count: usize) -> Vec<HeldLocks<'_, W>> {
        (0..count).map(|number| self.lock([number])).collect()
    }

    /// Returns true if all locks with numbers below `count` are held.
    #[cfg(test)]
    pub(crate) fn are_held(&self, count: usize) -> bool {
        let all = (0..count).fold(0, |bits, number| bits | 1 << number);
        self.0.load(Ordering::Relaxed) & all == all
    }

    /// Takes these bits, unless one of them is set. The exchange fails only if another thread has changed the word.
    #[inline(always)]
    fn take(&self, bits: u64) -> Option<HeldLocks<'_, W>> {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & bits == 0 {
            match self.0.compare_exchange(word, word | bits, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(HeldLocks { locks: self, bits }),
                Err(now) => word = now,
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn wait_for(&self, bits: u64, relax: fn(&mut Backoff)) -> HeldLocks<'_, W> {
        let mut backoff = Backoff::short();
        loop {
            relax(&mut backoff);
            if let Some(held) = self.take(bits) {
                return held;
            }
        }
    }
}

#[inline(always)]
fn bits_of<const COUNT: usize>(numbers: [usize; COUNT]) -> u64 {
    numbers.into_iter().fold(0, |bits, number| bits | 1 << (number % u64::BITS as usize))
}

impl<W: Word> Drop for HeldLocks<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.locks.0.fetch_and(!self.bits, Ordering::Release);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;
    use word::model::{NoRelease, Unchanged, Weakened, Weakening, explore, is_caught};

    use super::*;

    /// The data that locks 0 to 2 guard, which loom watches.
    struct World<V: Weakening> {
        locks: Locks<Weakened<V>>,
        guarded: [UnsafeCell<u32>; 3],
    }

    impl<V: Weakening> World<V> {
        fn change(&self, numbers: [usize; 2]) {
            let bits = bits_of(numbers);
            let relax = |_: &mut Backoff| thread::yield_now();
            let _held = self.locks.try_lock(numbers).unwrap_or_else(|| self.locks.wait_for(bits, relax));
            for number in numbers {
                // SAFETY: the lock of this number is held; loom checks whether that suffices.
                self.guarded[number].with_mut(|count| unsafe { *count += 1 });
            }
        }
    }

    /// Two threads that share one lock.
    fn scene<V: Weakening>() {
        let guarded = [0; 3].map(UnsafeCell::new);
        let world = Arc::new(World::<V> { locks: Locks::new(), guarded });
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.change([0, 1]))
        };
        world.change([2, 1]);
        other.join().unwrap();
        // SAFETY: the other thread has ended.
        let counts = [0, 1, 2].map(|number| world.guarded[number].with(|count| unsafe { *count }));
        assert_eq!(counts, [1, 2, 1]);
        assert!(!world.locks.are_held(1) && world.locks.try_lock([0, 1]).is_some());
    }

    #[test]
    fn lock_guarded_data_has_one_writer() {
        explore(2, scene::<Unchanged>);
    }

    #[test]
    fn an_unlocking_without_its_order_is_caught() {
        assert!(is_caught(2, scene::<NoRelease>));
    }

    /// Bits that do not exclude each other would be no locks.
    #[test]
    fn locks_of_other_numbers_are_free() {
        let locks = Locks::<AtomicU64>::new();
        let held = locks.lock([3, 62]);
        assert!(locks.try_lock([62, 5]).is_none() && locks.try_lock([3]).is_none());
        assert!(locks.try_lock([4, 5]).is_some() && !locks.are_held(63));
        drop(held);
        let all = locks.lock_in_turn(63);
        assert!(locks.are_held(63) && locks.try_lock([7]).is_none());
        drop(all);
        assert!(locks.try_lock([7]).is_some());
    }
}
