//! Where retired things wait until no pin can reach them.
//!
//! A thread's retired things go into an inbox, without a lock. A thread whose inbox is full takes the lane's lock,
//! hands everything on to the queue, tagged with the epoch of that moment, and frees as many as it may. A later tag holds back longer and
//! is right for things that were unlinked earlier, whichever thread reads it (`protocol`). A thread that collects hands on, too.
//!
//! Later retirements free what waits. Where none may follow, another thread is to collect: so a lane returns how much waits, if that is much.

#[cfg(test)]
mod tests;

use std::array;
use std::collections::VecDeque;
use std::mem;
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
/// A lane in which this part of what may wait does returns it from [`Limbo::retire`]: the background is to free it.
const REPORTED_SHARE: u64 = 64;
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
    reported_bytes_min: u64,
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
    /// No more than wait.
    unreported_bytes: u64,
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
        let waiting = || Waiting { queue: VecDeque::new(), until_advance: ADVANCE_EVERY, unreported_bytes: 0 };
        let lane = |_| Lane { inbox: Inbox::new(), waiting: Mutex::new(waiting()), bytes: AtomicU64::new(0) };
        let light_bytes_max = bytes_max / UNCOUNTED_SHARE / (LANE_COUNT * PLACE_COUNT) as u64;
        Limbo {
            lanes: Box::new(array::from_fn(lane)),
            bytes_max,
            light_bytes_max,
            reported_bytes_min: bytes_max / REPORTED_SHARE,
            is_over: AtomicBool::new(false),
        }
    }

    /// Takes `thing`, which was unlinked before this call and keeps so many bytes from being used anew. Now and then it hands earlier ones,
    /// now free, to `free`.
    ///
    /// Returns 0, or the bytes of things that wait and should not do so until the next write: a thread is to [collect](Limbo::collect)
    /// them. Each is returned once.
    #[inline(always)]
    pub fn retire(&self, thing: T, bytes: u64, free: impl FnMut(T)) -> u64 {
        let index = thread_index();
        let mut thing = thing;
        if index < LANE_COUNT && bytes <= self.light_bytes_max {
            // SAFETY: no other live thread has this index, and a thread that takes it over knows what the earlier one did.
            match unsafe { self.lanes[index].inbox.put((thing, bytes)) } {
                Ok(()) => return 0,
                Err((full, _)) => thing = full,
            }
        }
        self.retire_in(&self.lanes[index % LANE_COUNT], thing, bytes, free)
    }

    #[cold]
    #[inline(never)]
    fn retire_in(&self, lane: &Lane<T>, thing: T, bytes: u64, free: impl FnMut(T)) -> u64 {
        let mut waiting = lane.waiting.lock();
        let before_bytes = lane.bytes();
        let count = 1 + lane.hand_on(&mut waiting);
        waiting.queue.push_back(Retired { tag: tag(), bytes, thing });
        lane.count(bytes, 0);
        let more_bytes = lane.bytes() - before_bytes;
        let (is_heavy, due) = (self.is_heavy(lane), waiting.is_due(count));
        let freed = lane.pop_some(&mut waiting, FREED_FOR_EACH * count);
        let reported_bytes = self.report(lane, &mut waiting, more_bytes);
        drop(waiting);
        freed.into_iter().for_each(free);
        if is_heavy || due {
            self.after_retire(is_heavy, due);
        }
        reported_bytes
    }

    /// The bytes that [`Limbo::retire`] returns, now that so many more wait.
    fn report(&self, lane: &Lane<T>, waiting: &mut Waiting<T>, more_bytes: u64) -> u64 {
        waiting.unreported_bytes = lane.bytes().min(waiting.unreported_bytes + more_bytes);
        if waiting.unreported_bytes < self.reported_bytes_min { 0 } else { mem::take(&mut waiting.unreported_bytes) }
    }

    /// As [`Limbo::retire`], of many things, each with the bytes that it keeps. They share a lock, under which `things` is asked for them,
    /// and an epoch.
    #[inline]
    pub fn retire_all(&self, things: impl Iterator<Item = (T, u64)>, mut free: impl FnMut(T)) -> u64 {
        let lane = &self.lanes[thread_index() % LANE_COUNT];
        let mut waiting = lane.waiting.lock();
        let before_bytes = lane.bytes();
        let (mut count, tag, mut more_bytes) = (lane.hand_on(&mut waiting), tag(), 0);
        waiting.queue.reserve(things.size_hint().1.unwrap_or(0));
        things.for_each(|(thing, bytes)| {
            (count, more_bytes) = (count + 1, more_bytes + bytes);
            waiting.queue.push_back(Retired { tag, bytes, thing });
        });
        lane.count(more_bytes, 0);
        let (is_heavy, due) = (self.is_heavy(lane), waiting.is_due(count));
        let all_bytes = lane.bytes() - before_bytes;
        let reported_bytes = self.report(lane, &mut waiting, all_bytes);
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
            self.after_retire(is_heavy, due);
        }
        reported_bytes
    }

    fn is_heavy(&self, lane: &Lane<T>) -> bool {
        lane.bytes() > self.bytes_max / LANE_COUNT as u64
    }

    #[cold]
    #[inline(never)]
    fn after_retire(&self, is_heavy: bool, due: bool) {
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
            unsafe { lane.inbox.visit_all(|(_, bytes)| sum += bytes) };
            sum
        };
        self.lanes.iter().map(in_inbox).sum::<u64>() + self.queued_bytes()
    }

    /// As [`Limbo::bytes`], without the few of inboxes, and without a lock.
    pub fn queued_bytes(&self) -> u64 {
        self.lanes.iter().map(Lane::bytes).sum()
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
        self.bytes.store(self.bytes() + more - fewer, Ordering::Relaxed);
    }

    /// What waits in the queue keeps so many.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
