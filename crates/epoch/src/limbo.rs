//! Queues of retired things, which wait until no pin can reach them.
//!
//! A thread puts retired things into its inbox, without a lock. A thread whose inbox is full takes the lane's lock,
//! moves all things to the queue, tagged with the epoch of that moment, and frees as many as it may. A later tag
//! only delays the release, so it is right for things that were unlinked earlier, whichever thread reads the epoch
//! (`protocol`). A thread that collects also moves the inboxes' things to the queues.
//!
//! Later retirements free the waiting things. If no retirement may follow, another thread has to collect: therefore
//! a lane reports the waiting bytes if they are many.

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

/// Number of lanes. The first `LANE_COUNT` threads have an inbox each; the other threads rarely contend for a lock.
const LANE_COUNT: usize = 16;
/// Retirements of one lane between two advances. An advance interrupts the other cores for about a microsecond
/// each.
const ADVANCE_EVERY: u32 = 512;

/// All inboxes together keep at most 1/16 of the bytes that may wait: these bytes are not counted yet.
const UNCOUNTED_SHARE: u64 = 16;
/// A lane whose waiting bytes reach 1/64 of the limit returns them from [`Limbo::retire`]: the background has to
/// free them.
const REPORTED_SHARE: u64 = 64;
/// Number of things freed per retired thing: 2, so that a backlog shrinks. Not more, because a long batch adds tail
/// latency.
const FREED_FOR_EACH: usize = 2;
/// The most that one [`Limbo::retire`] frees: for the things of a full inbox and the one that did not fit.
pub const FREED_COUNT_MAX: usize = FREED_FOR_EACH * (PLACE_COUNT + 1);

/// The retired things of one store, in order of retirement per lane.
#[derive(Debug)]
pub struct Limbo<T> {
    lanes: Box<[Lane<T>; LANE_COUNT]>,
    bytes_max: u64,
    /// A thing that keeps more bytes does not wait in an inbox, where its bytes would not be counted.
    light_bytes_max: u64,
    reported_bytes_min: u64,
    is_over: AtomicBool,
}

/// A queue and an inbox. The lock is never held while a thing is freed, because freeing takes other locks.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<T> {
    /// Owned by the thread whose index is the lane's number.
    inbox: Inbox<(T, u64)>,
    waiting: Mutex<Waiting<T>>,
    /// Bytes kept by the things in the queue; changed under the lock.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Waiting<T> {
    queue: VecDeque<Retired<T>>,
    until_advance: u32,
    /// At most the lane's bytes.
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
    /// Creates a limbo that [`Limbo::is_over`] when more than `bytes_max` bytes wait. It still accepts things then.
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

    /// Retires `thing`, which was unlinked before this call and keeps `bytes` bytes from being reused. Some calls
    /// pass earlier things that are now free to `free`.
    ///
    /// Returns 0, or the bytes of waiting things that should not wait until the next write: a thread has to
    /// [collect](Limbo::collect) them. Each waiting byte is reported once.
    #[inline(always)]
    pub fn retire(&self, thing: T, bytes: u64, free: impl FnMut(T)) -> u64 {
        let index = thread_index();
        let mut thing = thing;
        if index < LANE_COUNT && bytes <= self.light_bytes_max {
            // SAFETY: no other live thread has this index, and a thread that takes it over sees the earlier owner's
            // puts.
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

    /// Returns the value for [`Limbo::retire`], now that `more_bytes` more bytes wait.
    fn report(&self, lane: &Lane<T>, waiting: &mut Waiting<T>, more_bytes: u64) -> u64 {
        waiting.unreported_bytes = lane.bytes().min(waiting.unreported_bytes + more_bytes);
        if waiting.unreported_bytes < self.reported_bytes_min { 0 } else { mem::take(&mut waiting.unreported_bytes) }
    }

    /// Like [`Limbo::retire`], for many things, each with the bytes that it keeps. They share a lock, under which
    /// `things` is iterated, and an epoch.
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

    /// Passes all things that are free by now to `free`; starts a new epoch first if any wait. Returns true if any
    /// was freed.
    pub fn collect(&self, mut free: impl FnMut(T)) -> bool {
        if self.is_empty() {
            self.weigh();
            return false;
        }
        // Before the next epoch begins, which would delay them further.
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

    /// Returns true if more bytes wait than the limit, as last seen by a thread that retired or collected. Costs
    /// one load.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that the waiting things keep.
    pub fn bytes(&self) -> u64 {
        let in_inbox = |lane: &Lane<T>| {
            let (_locked, mut sum) = (lane.waiting.lock(), 0);
            // SAFETY: under the lock.
            unsafe { lane.inbox.visit_all(|(_, bytes)| sum += bytes) };
            sum
        };
        self.lanes.iter().map(in_inbox).sum::<u64>() + self.queued_bytes()
    }

    /// Like [`Limbo::bytes`], but without the few things in inboxes, and without taking a lock.
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

    /// Returns the number of waiting things.
    pub fn len(&self) -> u64 {
        let in_lane = |lane: &Lane<T>| {
            let waiting = lane.waiting.lock();
            lane.inbox.len() + waiting.queue.len() as u64
        };
        self.lanes.iter().map(in_lane).sum()
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Waiting<T> {
    /// Returns true if a new epoch is due, now that `count` more things were retired.
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
    /// Moves the things in the inbox to the queue; returns their number.
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

    /// Removes and returns the oldest thing if no pin can reach it any more.
    #[inline]
    fn pop_free(&self, waiting: &mut Waiting<T>) -> Option<T> {
        if !is_free(waiting.queue.front()?.tag, safe()) {
            return None;
        }
        let Retired { bytes, thing, .. } = waiting.queue.pop_front()?;
        self.count(0, bytes);
        Some(thing)
    }

    /// Removes and returns the oldest things that no pin can reach any more: at most `count` and
    /// [`FREED_COUNT_MAX`].
    #[inline(always)]
    fn pop_some(&self, waiting: &mut Waiting<T>, count: usize) -> ArrayVec<T, FREED_COUNT_MAX> {
        std::iter::from_fn(|| self.pop_free(waiting)).take(count.min(FREED_COUNT_MAX)).collect()
    }

    /// The caller holds the lock.
    #[inline]
    fn count(&self, more: u64, fewer: u64) {
        self.bytes.store(self.bytes() + more - fewer, Ordering::Relaxed);
    }

    /// Returns the bytes kept by the things in the queue.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
