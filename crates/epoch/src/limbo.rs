//! Where retired things wait until no pin can reach them.
//!
//! A thread's retired things go into an inbox, without a lock. A thread whose inbox is full takes the lane's lock,
//! hands everything on to the queue, tagged with the epoch of that moment, and frees as many as it may. A later tag holds back longer and
//! is right for things that were unlinked earlier, whichever thread reads it (`protocol`). A thread that collects hands on, too.

use std::array;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrayvec::ArrayVec;
use parking_lot::Mutex;

use crate::inbox::{Inbox, PLACE_COUNT};
use crate::pins::{advance, safe, tag, thread_index};
use crate::protocol::is_free;

/// Lanes: the first so many threads have an inbox each, and the others rarely meet them at a lock.
const LANE_COUNT: usize = 16;
/// Retirements of one lane between two advances: an advance interrupts the other cores, about a microsecond each.
const ADVANCE_EVERY: u32 = 512;

/// What all inboxes keep together is this part of what may wait, at the most: it is not counted yet.
const UNCOUNTED_SHARE: u64 = 16;
/// Things freed at once for each that was retired: so a backlog shrinks, and no more, since a long batch is somebody's tail latency.
const FREED_FOR_EACH: usize = 2;
/// What one [`Limbo::retire`] frees at the most: for what was in the inbox, and the one that found it full.
pub const FREED_COUNT_MAX: usize = FREED_FOR_EACH * (PLACE_COUNT + 1);

/// Retired things of one store, in order of retirement per lane.
#[derive(Debug)]
pub struct Limbo<T> {
    lanes: Box<[Lane<T>; LANE_COUNT]>,
    bytes_max: u64,
    /// What keeps more does not wait in an inbox, where it would not be counted.
    light_bytes_max: u64,
    is_over: AtomicBool,
}

/// A lock is never held while something is freed: that takes locks of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<T> {
    /// Of the thread of the lane's number.
    inbox: Inbox<(T, u64)>,
    waiting: Mutex<Waiting<T>>,
    /// What waits in the queue keeps so many; changed under the lock.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Waiting<T> {
    queue: VecDeque<Retired<T>>,
    until_advance: u32,
}

#[derive(Debug)]
struct Retired<T> {
    tag: u64,
    bytes: u64,
    thing: T,
}

impl<T: Send> Default for Limbo<T> {
    fn default() -> Limbo<T> {
        Limbo::bounded(u64::MAX)
    }
}

impl<T: Send> Limbo<T> {
    /// One that [`Limbo::is_over`] when things of more than `bytes_max` wait. It takes them all the same.
    #[must_use]
    pub fn bounded(bytes_max: u64) -> Limbo<T> {
        let waiting = || Waiting { queue: VecDeque::new(), until_advance: ADVANCE_EVERY };
        let lane = |_| Lane { inbox: Inbox::new(), waiting: Mutex::new(waiting()), bytes: AtomicU64::new(0) };
        let light_bytes_max = bytes_max / UNCOUNTED_SHARE / (LANE_COUNT * PLACE_COUNT) as u64;
        Limbo { lanes: Box::new(array::from_fn(lane)), bytes_max, light_bytes_max, is_over: AtomicBool::new(false) }
    }

    /// Takes `thing`, which was unlinked before this call and keeps so many bytes from being used anew. Now and then it hands earlier ones,
    /// now free, to `free`.
    #[inline(always)]
    pub fn retire(&self, thing: T, bytes: u64, free: impl FnMut(T)) {
        let index = thread_index();
        let mut thing = thing;
        if index < LANE_COUNT && bytes <= self.light_bytes_max {
            // SAFETY: no other live thread has this index, and a thread that takes it over knows what the earlier one did.
            match unsafe { self.lanes[index].inbox.put((thing, bytes)) } {
                Ok(()) => return,
                Err((full, _)) => thing = full,
            }
        }
        self.retire_in(&self.lanes[index % LANE_COUNT], thing, bytes, free);
    }

    #[cold]
    #[inline(never)]
    fn retire_in(&self, lane: &Lane<T>, thing: T, bytes: u64, free: impl FnMut(T)) {
        let mut waiting = lane.waiting.lock();
        let count = 1 + lane.hand_on(&mut waiting);
        waiting.queue.push_back(Retired { tag: tag(), bytes, thing });
        lane.count(bytes, 0);
        let (is_heavy, due) = (self.is_heavy(lane), waiting.is_due(count));
        let freed = lane.pop_some(&mut waiting, FREED_FOR_EACH * count);
        drop(waiting);
        freed.into_iter().for_each(free);
        if is_heavy || due {
            self.look_after(is_heavy, due);
        }
    }

    /// As [`Limbo::retire`], of many things, each with the bytes that it keeps. They share a lock, under which `things` is asked for them,
    /// and an epoch.
    #[inline]
    pub fn retire_all(&self, things: impl Iterator<Item = (T, u64)>, mut free: impl FnMut(T)) {
        let lane = &self.lanes[thread_index() % LANE_COUNT];
        let mut waiting = lane.waiting.lock();
        let (mut count, tag, mut more_bytes) = (lane.hand_on(&mut waiting), tag(), 0);
        waiting.queue.reserve(things.size_hint().1.unwrap_or(0));
        things.for_each(|(thing, bytes)| {
            (count, more_bytes) = (count + 1, more_bytes + bytes);
            waiting.queue.push_back(Retired { tag, bytes, thing });
        });
        lane.count(more_bytes, 0);
        let (is_heavy, due) = (self.is_heavy(lane), waiting.is_due(count));
        drop(waiting);
        let mut left = FREED_FOR_EACH * count;
        while left > 0 {
            let freed = lane.pop_some(&mut lane.waiting.lock(), left);
            if freed.is_empty() {
                break;
            }
            left -= freed.len();
            freed.into_iter().for_each(&mut free);
        }
        if is_heavy || due {
            self.look_after(is_heavy, due);
        }
    }

    fn is_heavy(&self, lane: &Lane<T>) -> bool {
        lane.bytes.load(Ordering::Relaxed) > self.bytes_max / LANE_COUNT as u64
    }

    #[cold]
    #[inline(never)]
    fn look_after(&self, is_heavy: bool, due: bool) {
        if is_heavy {
            self.weigh();
        }
        if due {
            advance();
        }
    }

    /// Hands everything that is free by now to `free`; starts a new epoch first if anything waits. True if any was freed.
    pub fn collect(&self, mut free: impl FnMut(T)) -> bool {
        if self.is_empty() {
            self.weigh();
            return false;
        }
        // Before the next epoch begins: it would hold them back for longer.
        for lane in &*self.lanes {
            lane.hand_on(&mut lane.waiting.lock());
        }
        advance();
        let mut freed = false;
        for lane in &*self.lanes {
            let pop = || lane.pop_free(&mut lane.waiting.lock());
            for thing in std::iter::from_fn(pop) {
                free(thing);
                freed = true;
            }
        }
        self.weigh();
        freed
    }

    /// True if things of more bytes wait than should: as far as the threads that retired something lately, or collected, have seen.
    /// Costs a load.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How many bytes are kept by what waits.
    pub fn bytes(&self) -> u64 {
        let in_inbox = |lane: &Lane<T>| {
            let (_locked, mut sum) = (lane.waiting.lock(), 0);
            // SAFETY: under the lock.
            unsafe { lane.inbox.show_all(|(_, bytes)| sum += bytes) };
            sum
        };
        self.lanes.iter().map(in_inbox).sum::<u64>() + self.queued_bytes()
    }

    /// As [`Limbo::bytes`], without the few of inboxes, and without a lock.
    pub fn queued_bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.bytes.load(Ordering::Relaxed)).sum()
    }

    #[cold]
    fn weigh(&self) {
        let is_over = self.queued_bytes() > self.bytes_max;
        if is_over != self.is_over() {
            self.is_over.store(is_over, Ordering::Relaxed);
        }
    }

    /// How many things wait.
    pub fn len(&self) -> u64 {
        let in_lane = |lane: &Lane<T>| {
            let waiting = lane.waiting.lock();
            lane.inbox.len() + waiting.queue.len() as u64
        };
        self.lanes.iter().map(in_lane).sum()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Waiting<T> {
    /// True if a new epoch is due now that so many more were retired.
    #[inline(always)]
    fn is_due(&mut self, count: usize) -> bool {
        self.until_advance = self.until_advance.saturating_sub(count as u32);
        let due = self.until_advance == 0;
        if due {
            self.until_advance = ADVANCE_EVERY;
        }
        due
    }
}

impl<T> Lane<T> {
    /// Puts what is in the inbox into the queue; how many that were.
    fn hand_on(&self, waiting: &mut Waiting<T>) -> usize {
        let mut count = 0;
        let hand_on = |(thing, bytes)| {
            waiting.queue.push_back(Retired { tag: tag(), bytes, thing });
            self.count(bytes, 0);
            count += 1;
        };
        // SAFETY: `waiting` was reached by the lock.
        unsafe { self.inbox.take_all(hand_on) };
        count
    }

    /// The oldest thing, if no pin can reach it any more.
    #[inline]
    fn pop_free(&self, waiting: &mut Waiting<T>) -> Option<T> {
        if !is_free(waiting.queue.front()?.tag, safe()) {
            return None;
        }
        let Retired { bytes, thing, .. } = waiting.queue.pop_front()?;
        self.count(0, bytes);
        Some(thing)
    }

    /// The oldest things that no pin can reach any more, so many and [`FREED_COUNT_MAX`] at the most.
    #[inline(always)]
    fn pop_some(&self, waiting: &mut Waiting<T>, count: usize) -> ArrayVec<T, FREED_COUNT_MAX> {
        std::iter::from_fn(|| self.pop_free(waiting)).take(count.min(FREED_COUNT_MAX)).collect()
    }

    /// The caller holds the lock.
    #[inline]
    fn count(&self, more: u64, fewer: u64) {
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + more - fewer, Ordering::Relaxed);
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
        let limbo = Limbo::bounded(3 * u64::from(ADVANCE_EVERY));
        let pin = pin();
        for thing in 0..2 * u64::from(ADVANCE_EVERY) {
            limbo.retire(thing, 3, |_| panic!("freed under a pin"));
        }
        assert_eq!((limbo.bytes(), limbo.is_over()), (6 * u64::from(ADVANCE_EVERY), true));
        drop(pin);
        let mut freed = Vec::new();
        while !limbo.is_empty() {
            limbo.collect(|thing| freed.push(thing));
        }
        assert_eq!(freed, (0..2 * u64::from(ADVANCE_EVERY)).collect::<Vec<_>>());
        assert_eq!((limbo.bytes(), limbo.is_over()), (0, false));
    }

    /// Light things wait in the thread's inbox: they count, and are freed, as those of the queue.
    #[test]
    fn what_lies_in_an_inbox_waits_as_the_others_do() {
        let limbo = Limbo::bounded(u64::MAX);
        let pin = pin();
        (0..PLACE_COUNT as u64).for_each(|thing| limbo.retire(thing, 8, |_| panic!("freed under a pin")));
        let in_queues: usize = limbo.lanes.iter().map(|lane| lane.waiting.lock().queue.len()).sum();
        assert!(in_queues == 0 || thread_index() >= LANE_COUNT, "{in_queues} are in queues");
        assert_eq!((limbo.len(), limbo.bytes()), (PLACE_COUNT as u64, 8 * PLACE_COUNT as u64));
        drop(pin);
        let mut freed = Vec::new();
        while !limbo.is_empty() {
            limbo.collect(|thing| freed.push(thing));
        }
        assert_eq!((freed, limbo.bytes()), ((0..PLACE_COUNT as u64).collect::<Vec<_>>(), 0));
    }

    /// Each waits as if it were alone, behind what was in the inbox, and goes as that does.
    #[test]
    fn things_that_are_retired_together_wait_and_are_freed() {
        const COUNT: u64 = 3 * ADVANCE_EVERY as u64;
        let limbo = Limbo::bounded(u64::MAX);
        let pin = pin();
        limbo.retire(0, 8, |_| panic!("freed under a pin"));
        limbo.retire_all((1..COUNT).map(|thing| (thing, 8)), |_| panic!("freed under a pin"));
        assert_eq!((limbo.len(), limbo.bytes()), (COUNT, 8 * COUNT));
        drop(pin);
        let (mut freed, mut next) = (Vec::new(), COUNT);
        while (freed.len() as u64) < COUNT {
            advance();
            limbo.retire_all((next..next + 20).map(|thing| (thing, 8)), |thing| freed.push(thing));
            next += 20;
        }
        while !limbo.is_empty() {
            limbo.collect(|thing| freed.push(thing));
        }
        assert_eq!((freed, limbo.bytes()), ((0..next).collect::<Vec<_>>(), 0));
    }

    /// What was over, and went two by two, is noticed by the next collection.
    #[test]
    fn an_empty_limbo_is_not_over() {
        let limbo = Limbo::bounded(10);
        let pin = pin();
        (0..3).for_each(|thing| limbo.retire(thing, 5, |_| panic!("freed under a pin")));
        assert!(limbo.is_over());
        drop(pin);
        let mut freed_count = 0;
        while limbo.bytes() > 0 {
            advance();
            // Of no bytes: nobody weighs for that.
            limbo.retire(3, 0, |_| freed_count += 1);
        }
        assert!(freed_count >= 3);
        while !limbo.is_empty() {
            limbo.collect(|_| ());
        }
        limbo.collect(|_| ());
        assert!(!limbo.is_over());
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
                limbo.retire(AtomicPtr::new(old), 8, free);
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
