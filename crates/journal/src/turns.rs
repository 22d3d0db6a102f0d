//! Decides which of the waiting threads syncs, for all of them.
//!
//! A thread that has appended, and waits for a sync, joins the open *group*. If a *lane* is free, one member takes
//! it and closes the group. This *leader* writes out and syncs for all members; threads that arrive later join the
//! next group. There is more than one lane because a disk works on several syncs at the same time, and a thread
//! that was served and writes again need not wait for a complete sync before its own begins.
//!
//! # Invariants
//! - A member has appended before it joins, and the leader closes the group before writing out. So all members are
//!   served.
//! - A member that sleeps has read the group's word before seeing that it must sleep. When a lane becomes free, and
//!   when a group was served, the word changes before any member is woken. So no member sleeps through its wake-up.
//! - Distant groups share a word. A thread that is woken instead of another group's member wakes all threads that
//!   sleep at this word.
//! - A leader frees its lane, also after a failure.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;

/// Number of concurrent syncs. A third makes groups smaller, and nothing faster.
pub(crate) const LANE_COUNT: u64 = 2;

/// Enough that groups that are waited for at the same time rarely share a word.
const WORD_COUNT: usize = 8;

/// Wakes every sleeping thread.
const ALL: u32 = i32::MAX as u32;

/// One more taken lane: the lowest bits of a [`State`].
const LANE: u64 = 1;
/// One more member of the open group: the bits above.
const MEMBER: u64 = 1 << 8;
/// The next group: the highest bits.
const GROUP: u64 = 1 << 32;

/// The open group's number, the number of its members, and the number of taken lanes.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    fn group(self) -> u32 {
        (self.0 / GROUP) as u32
    }

    fn members(self) -> u64 {
        self.0 % GROUP / MEMBER
    }

    fn has_free_lane(self) -> bool {
        self.0 % MEMBER < LANE_COUNT * LANE
    }

    /// Returns the state after closing the group and taking a lane.
    fn taken(self) -> State {
        State((self.0 / GROUP).wrapping_add(1).wrapping_mul(GROUP) + self.0 % MEMBER + LANE)
    }
}

/// The groups and lanes of a journal.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: AtomicU64,
    words: [AtomicU32; WORD_COUNT],
}

/// A member of a group, waiting to be served.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    turns: &'a Turns,
    group: u32,
}

/// A lane, taken with a group; freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    group: u32,
    members: u64,
}

impl Turns {
    /// Joins the open group. The caller has already appended.
    pub(crate) fn join(&self) -> Waiting<'_> {
        let state = State(self.state.fetch_add(MEMBER, Ordering::SeqCst));
        Waiting { turns: self, group: state.group() }
    }

    fn state(&self) -> State {
        State(self.state.load(Ordering::SeqCst))
    }

    fn word(&self, group: u32) -> &AtomicU32 {
        &self.words[group as usize % WORD_COUNT]
    }

    fn wake(&self, group: u32, count: u32) {
        let _ = futex::wake(self.word(group), futex::Flags::PRIVATE, count);
    }
}

impl<'a> Waiting<'a> {
    /// Waits for a lane, with which the caller syncs for its group. Returns `None` once `is_done`: another leader's
    /// sync covered it.
    pub(crate) fn turn(&self, is_done: impl Fn() -> bool) -> Option<Turn<'a>> {
        loop {
            let word = self.turns.word(self.group).load(Ordering::SeqCst);
            let state = self.turns.state();
            if is_done() {
                return None;
            }
            if state.group() == self.group && state.has_free_lane() {
                match self.take(state) {
                    None => continue,
                    taken => return taken,
                }
            }
            self.sleep(word);
        }
    }

    fn take(&self, state: State) -> Option<Turn<'a>> {
        let Waiting { turns, group } = *self;
        let taken = turns.state.compare_exchange(state.0, state.taken().0, Ordering::SeqCst, Ordering::Relaxed);
        taken.ok().map(|_| Turn { turns, group, members: state.members() })
    }

    fn sleep(&self, word: u32) {
        let _ = futex::wait(self.turns.word(self.group), futex::Flags::PRIVATE, word, None);
        let state = self.turns.state();
        let is_in_others_place = state.group() != self.group && state.group() as usize % WORD_COUNT == self.place();
        if is_in_others_place && state.has_free_lane() {
            self.turns.wake(self.group, ALL);
        }
    }

    fn place(&self) -> usize {
        self.group as usize % WORD_COUNT
    }
}

impl Drop for Waiting<'_> {
    /// Passes on a wake-up: a member that was served before its group took a lane may have been woken to take it.
    fn drop(&mut self) {
        let state = self.turns.state();
        if state.group() == self.group && state.has_free_lane() && state.members() > 1 {
            self.turns.wake(self.group, 1);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Turn { turns, group, members } = *self;
        turns.word(group).fetch_add(1, Ordering::SeqCst);
        if members > 1 {
            turns.wake(group, ALL);
        }
        let state = State(turns.state.fetch_sub(LANE, Ordering::SeqCst) - LANE);
        if state.members() > 0 {
            turns.word(state.group()).fetch_add(1, Ordering::SeqCst);
            turns.wake(state.group(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;

    const WRITERS: u64 = 7;
    const WRITES: u64 = 5_000;

    /// Runs writers that each need their entries synced, by any of them.
    fn run(pause: impl Fn(u64) + Sync) {
        let (turns, appended, synced) = (Turns::default(), AtomicU64::new(0), AtomicU64::new(0));
        let syncing_count = AtomicU64::new(0);
        let sync = || {
            assert!(syncing_count.fetch_add(1, Ordering::SeqCst) < LANE_COUNT, "there are so many lanes");
            let end = appended.load(Ordering::SeqCst);
            thread::yield_now();
            synced.fetch_max(end, Ordering::SeqCst);
            syncing_count.fetch_sub(1, Ordering::SeqCst);
        };
        let write = || {
            let position = appended.fetch_add(1, Ordering::SeqCst) + 1;
            let is_synced = || synced.load(Ordering::SeqCst) >= position;
            let waiting = turns.join();
            if let Some(_turn) = waiting.turn(is_synced) {
                sync();
            }
            assert!(is_synced());
        };
        let write_often = |writer| (0..WRITES).for_each(|_| (write(), pause(writer)).1);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let write_often = &write_often;
                scope.spawn(move || write_often(writer));
            }
        });
    }

    #[test]
    fn all_threads_are_served() {
        run(|_| ());
    }

    #[test]
    fn one_sync_serves_all_earlier_writers() {
        let (turns, synced, sync_count) = (Turns::default(), AtomicU64::new(0), AtomicU64::new(0));
        let meeting = Barrier::new(WRITERS as usize);
        let write = |round| {
            let waiting = turns.join();
            meeting.wait();
            if let Some(_turn) = waiting.turn(|| synced.load(Ordering::SeqCst) >= round) {
                synced.fetch_max(round, Ordering::SeqCst);
                sync_count.fetch_add(1, Ordering::SeqCst);
            }
            meeting.wait();
            assert_eq!(sync_count.load(Ordering::SeqCst), round);
            meeting.wait();
        };
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| (1..=WRITES / 10).for_each(write));
            }
        });
    }

    #[test]
    fn rare_writers_are_served() {
        run(|writer| (0..writer * writer).for_each(|_| thread::yield_now()));
    }

    #[test]
    fn group_is_counted_until_it_is_closed() {
        let turns = Turns::default();
        let (one, other) = (turns.join(), turns.join());
        let turn = one.turn(|| false).unwrap();
        assert_eq!((turn.group, turn.members, turns.state().members()), (0, 2, 0));
        assert!(turns.state().has_free_lane());
        let late = turns.join();
        let second = late.turn(|| false).unwrap();
        assert_eq!((second.group, second.members, turns.state().has_free_lane()), (1, 1, false));
        assert!(other.turn(|| true).is_none());
        drop((turn, second));
        assert_eq!(turns.state().0, 2 * GROUP);
    }
}
