//! Where retired things wait until no pin can reach them.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::pins::{advance, safe, tag, thread_index};
use crate::protocol::is_free;

/// Lanes, so that writers rarely meet at a lock.
const LANE_COUNT: usize = 8;
/// Retirements of one lane between two advances: an advance interrupts the other cores, about a microsecond each.
const ADVANCE_EVERY: u32 = 512;
/// Things freed per retirement. Two, so that a backlog shrinks; not more, since a long batch is somebody's tail latency.
const FREED_PER_RETIREMENT: usize = 2;

/// Retired things of one store, in order of retirement per lane.
#[derive(Debug)]
pub struct Limbo<T> {
    lanes: [Lane<T>; LANE_COUNT],
}

/// A lock is taken once a retirement, and never while something is freed: that takes locks of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<T>(Mutex<Waiting<T>>);

#[derive(Debug)]
struct Waiting<T> {
    queue: VecDeque<(u64, T)>,
    until_advance: u32,
}

impl<T> Default for Limbo<T> {
    fn default() -> Limbo<T> {
        let waiting = || Waiting { queue: VecDeque::new(), until_advance: ADVANCE_EVERY };
        Limbo { lanes: std::array::from_fn(|_| Lane(Mutex::new(waiting()))) }
    }
}

impl<T> Limbo<T> {
    /// Takes `thing`, which was unlinked before this call, and hands at most two earlier ones, now free, to `free`.
    #[inline]
    pub fn retire(&self, thing: T, free: impl FnMut(T)) {
        let mut waiting = self.lanes[thread_index() % LANE_COUNT].0.lock();
        waiting.queue.push_back((tag(), thing));
        let freed: [Option<T>; FREED_PER_RETIREMENT] = std::array::from_fn(|_| waiting.pop_free());
        waiting.until_advance -= 1;
        let due = waiting.until_advance == 0;
        if due {
            waiting.until_advance = ADVANCE_EVERY;
        }
        drop(waiting);
        freed.into_iter().flatten().for_each(free);
        if due {
            advance();
        }
    }

    /// Hands everything that is free by now to `free`; starts a new epoch first if anything waits. True if any was freed.
    pub fn collect(&self, mut free: impl FnMut(T)) -> bool {
        if self.is_empty() {
            return false;
        }
        advance();
        let mut freed = false;
        for lane in &self.lanes {
            let pop = || lane.0.lock().pop_free();
            for thing in std::iter::from_fn(pop) {
                free(thing);
                freed = true;
            }
        }
        freed
    }

    /// How many things wait.
    pub fn len(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.0.lock().queue.len() as u64).sum()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Waiting<T> {
    /// The oldest thing, if no pin can reach it any more.
    #[inline]
    fn pop_free(&mut self) -> Option<T> {
        let (tag, _) = self.queue.front()?;
        if !is_free(*tag, safe()) {
            return None;
        }
        self.queue.pop_front().map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::pin;

    #[test]
    fn nothing_is_freed_under_a_pin_and_everything_after_it() {
        let limbo = Limbo::default();
        let pin = pin();
        for thing in 0..2 * u64::from(ADVANCE_EVERY) {
            limbo.retire(thing, |_| panic!("freed under a pin"));
        }
        drop(pin);
        let mut freed = Vec::new();
        while !limbo.is_empty() {
            limbo.collect(|thing| freed.push(thing));
        }
        assert_eq!(freed, (0..2 * u64::from(ADVANCE_EVERY)).collect::<Vec<_>>());
    }

    /// Readers follow a pointer that a writer replaces and frees; a freed cell is poisoned before its memory goes.
    #[test]
    fn readers_never_meet_freed_memory() {
        const POISON: u64 = u64::MAX;
        const UPDATE_COUNT: u64 = if cfg!(miri) { 1_000 } else { 100_000 };
        let cell = |value| Box::into_raw(Box::new(AtomicU64::new(value)));
        let (shared, stop, limbo) = (AtomicPtr::new(cell(0)), AtomicBool::new(false), Limbo::default());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _pin = pin();
                        // SAFETY: pinned since before the load, so that the cell is not freed.
                        let value = unsafe { &*shared.load(Ordering::Acquire) }.load(Ordering::Relaxed);
                        assert_ne!(value, POISON);
                    }
                });
            }
            let free = |old: AtomicPtr<AtomicU64>| {
                // SAFETY: unlinked, and no pin can reach it.
                let old = unsafe { Box::from_raw(old.into_inner()) };
                old.store(POISON, Ordering::Relaxed);
            };
            for value in 1..UPDATE_COUNT {
                let old = shared.swap(cell(value), Ordering::AcqRel);
                limbo.retire(AtomicPtr::new(old), free);
            }
            stop.store(true, Ordering::Relaxed);
            while !limbo.is_empty() {
                limbo.collect(free);
            }
        });
        // SAFETY: the last cell was never retired, and all readers are gone.
        drop(unsafe { Box::from_raw(shared.into_inner()) });
    }
}
