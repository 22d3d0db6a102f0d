//! The steps of pinning, retiring and advancing, independent of where the words are stored and how barriers are
//! made.
//!
//! Readers and writers execute *light* barriers, the reclaimer *heavy* ones. A light and a heavy barrier order
//! accesses as two sequentially consistent fences would. Where `membarrier` makes every thread execute a fence,
//! light barriers cost nothing.
//!
//! # Why it is sound
//! Let a writer unlink X (store U), execute a light barrier, and read the epoch e, X's tag. Another thread may do
//! the last two for the writer if U happened before. [`advance`] increments the epoch, executes a heavy barrier,
//! and only then reads the list of pins and the pins in it. Advances exclude each other.
//! - A reader whose thread is not in the list when an advance reads the list entered later. So the reader executed
//!   its light barrier after that advance's heavy one, as in the next case.
//! - If an advance does not see a reader's pin, the reader executed the light barrier, which follows the pin, after
//!   that advance's heavy one. So the reader's loads see every store from before the heavy one. If X's tag is below
//!   the epoch of that advance, the tag was read before the increment, the writer's light barrier came before the
//!   heavy one, and U is such a store.
//! - A reader whose pin is seen holds some epoch p. If p >= e + 2, the reader read the epoch after the increment to
//!   e + 2, which came after the heavy barrier of the advance to e + 1, which came after U: the reader cannot have
//!   found X.
//!
//! So X is free when `e + 2 <= min(all pins seen, current epoch)`. [`advance`] returns that minimum.
//!
//! # The same thing at the same place
//! A thread reads the safe epoch s, and later finds X. Then e >= s: otherwise the writer's light barrier came before
//! the heavy one of the advance that has stored s, and the thread would have seen U. X is free only when the safe epoch
//! is at least e + 2. A thread that finds another thing at X's place sees the stores of the thread that has freed X,
//! and so reads a safe epoch of at least s + 2 afterwards. While it reads a smaller one, an equal place is the same
//! thing. This also holds for a copy of X that names X's place, if the copy is unlinked before X is tagged.

use std::sync::atomic::Ordering;

use word::Word;

/// The value of the pin of a thread that is not pinned.
pub(crate) const UNPINNED: u64 = 0;
/// The first epoch: any number but [`UNPINNED`].
pub(crate) const FIRST_EPOCH: u64 = 1;

/// Pins a thread that is not pinned. Nothing that it loads from now on is freed until [`leave`].
#[inline(always)]
pub(crate) fn enter<W: Word>(pin: &W, epoch: &W, light_barrier: impl FnOnce()) {
    // An epoch that has already passed only holds back more.
    pin.store(epoch.load(Ordering::Relaxed), Ordering::Relaxed);
    light_barrier();
}

/// Restores the pin's earlier value.
#[inline(always)]
pub(crate) fn leave<W: Word>(pin: &W, outer: u64) {
    pin.store(outer, Ordering::Release);
}

/// Returns the tag for a thing that the caller has unlinked.
#[inline(always)]
pub(crate) fn tag<W: Word>(epoch: &W, light_barrier: impl FnOnce()) -> u64 {
    light_barrier();
    epoch.load(Ordering::Acquire)
}

/// Starts a new epoch and determines how far every thread in the list has come. `pins` reads the list when it is
/// called. Calls must not overlap.
pub(crate) fn advance<'a, W: Word + 'a, I: Iterator<Item = &'a W>>(
    epoch: &W,
    safe: &W,
    pins: impl FnOnce() -> I,
    heavy_barrier: impl FnOnce(),
) -> u64 {
    let now = epoch.fetch_add(1, Ordering::SeqCst) + 1;
    heavy_barrier();
    let held = pins().map(|pin| pin.load(Ordering::Acquire)).filter(|&pin| pin != UNPINNED);
    let oldest = held.fold(now, u64::min);
    safe.fetch_max(oldest, Ordering::AcqRel).max(oldest)
}

/// Returns true if no thread can still reach a thing retired with `tag`, once every thread has come as far as
/// `safe`.
#[inline(always)]
pub(crate) fn is_free(tag: u64, safe: u64) -> bool {
    tag + 2 <= safe
}

/// Explores every interleaving of a reader, a writer and a reclaimer, with the reorderings that the memory model
/// allows. Fences model a pair of a light and a heavy barrier. Not run by Miri: loom switches stacks in assembly.
#[cfg(all(test, not(miri)))]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::sync::{Arc, Mutex};
    use loom::thread;
    use word::model::Modelled;

    use super::*;

    /// A link to a thing. A writer removes the link, and the reclaimer then overwrites the thing.
    struct World {
        epoch: Modelled,
        safe: Modelled,
        pin: Modelled,
        /// Nonzero if the reader's pin is in the list of pins.
        is_listed: AtomicU64,
        is_linked: AtomicU64,
        thing: UnsafeCell<u64>,
        retired: Mutex<Option<u64>>,
        barriers: Barriers,
    }

    /// Selects the threads that execute the barriers of the protocol.
    #[derive(Clone, Copy)]
    struct Barriers {
        reader: bool,
        writer: bool,
        reclaimer: bool,
        /// The list of pins is read after the reclaimer's barrier.
        before_list: bool,
        /// The reclaimer, not the writer, tags the unlinked thing.
        is_tagged_late: bool,
        /// The safe epoch is read after the first look, not before it.
        is_begun_late: bool,
    }

    /// The tag of a thing that is not tagged yet.
    const UNTAGGED: u64 = u64::MAX;

    fn barrier(is_there: bool) -> impl FnOnce() {
        move || {
            if is_there {
                fence(Ordering::SeqCst);
            }
        }
    }

    impl World {
        fn new(barriers: Barriers, is_listed: bool) -> World {
            World {
                epoch: Modelled::new(FIRST_EPOCH),
                safe: Modelled::new(0),
                pin: Modelled::new(UNPINNED),
                is_listed: AtomicU64::new(u64::from(is_listed)),
                is_linked: AtomicU64::new(1),
                thing: UnsafeCell::new(7),
                retired: Mutex::new(None),
                barriers,
            }
        }

        /// Reads the thing through the link. A reader whose pin is not in the list adds it first.
        fn read(&self) {
            if self.is_listed.load(Ordering::Relaxed) == 0 {
                self.is_listed.fetch_add(1, Ordering::AcqRel);
            }
            enter(&self.pin, &self.epoch, barrier(self.barriers.reader));
            if self.is_linked.load(Ordering::Acquire) == 1 {
                // SAFETY: pinned since before the link was followed; loom checks whether that suffices.
                self.thing.with(|thing| assert_eq!(unsafe { *thing }, 7));
            }
            leave(&self.pin, UNPINNED);
        }

        fn unlink(&self) {
            self.is_linked.store(0, Ordering::Release);
            let mut retired = self.retired.lock().unwrap();
            let is_late = self.barriers.is_tagged_late;
            *retired = Some(if is_late { UNTAGGED } else { tag(&self.epoch, barrier(self.barriers.writer)) });
        }

        fn reclaim(&self) {
            let mut safe = 0;
            if let Some(untagged) = self.retired.lock().unwrap().as_mut().filter(|tag| **tag == UNTAGGED) {
                *untagged = tag(&self.epoch, barrier(self.barriers.writer));
            }
            for _ in 0..2 {
                let listed = || (self.is_listed.load(Ordering::Acquire) == 1).then_some(&self.pin).into_iter();
                let heavy = barrier(self.barriers.reclaimer);
                safe = if self.barriers.before_list {
                    advance(&self.epoch, &self.safe, listed, heavy)
                } else {
                    let listed = listed();
                    advance(&self.epoch, &self.safe, || listed, heavy)
                };
            }
            let retired = self.retired.lock().unwrap().take();
            if retired.is_some_and(|tag| tag != UNTAGGED && is_free(tag, safe)) {
                // SAFETY: free; loom checks whether that holds.
                self.thing.with_mut(|thing| unsafe { *thing = 0 });
            }
        }
    }

    /// Explores all runs with at most `preemption_bound` preemptions, or all runs for `None`.
    fn model(barriers: Barriers, is_listed: bool, preemption_bound: Option<usize>) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = preemption_bound;
        model.check(move || {
            let world = Arc::new(World::new(barriers, is_listed));
            let spawn = |work: fn(&World)| {
                let world = Arc::clone(&world);
                thread::spawn(move || work(&world))
            };
            let threads = [spawn(World::read), spawn(World::unlink)];
            world.reclaim();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    /// A place that a link leads to. The thing at it is replaced by another one at the same place once it is free.
    struct Reuse {
        epoch: Modelled,
        safe: Modelled,
        /// The number of the thing that is linked; 0 if none is.
        linked: AtomicU64,
        retired: Mutex<Option<u64>>,
        barriers: Barriers,
    }

    impl Reuse {
        /// Looks at the link twice. If nothing was freed since before the first look, both have found the same thing.
        fn read_twice(&self) {
            let early = (!self.barriers.is_begun_late).then(|| self.safe.load(Ordering::Acquire));
            let first = self.linked.load(Ordering::Acquire);
            let start = early.unwrap_or_else(|| self.safe.load(Ordering::Acquire));
            let second = self.linked.load(Ordering::Acquire);
            fence(Ordering::Acquire);
            let is_recent = !is_free(start, self.safe.load(Ordering::Acquire));
            assert!(!is_recent || first != 1 || second != 2, "another thing at the same place");
        }

        fn unlink(&self) {
            self.linked.store(0, Ordering::Release);
            *self.retired.lock().unwrap() = Some(tag(&self.epoch, barrier(self.barriers.writer)));
        }

        fn reuse(&self) {
            for _ in 0..3 {
                let heavy = barrier(self.barriers.reclaimer);
                let safe = advance(&self.epoch, &self.safe, std::iter::empty::<&Modelled>, heavy);
                if self.retired.lock().unwrap().take_if(|tag| is_free(*tag, safe)).is_some() {
                    self.linked.store(2, Ordering::Release);
                }
            }
        }
    }

    fn model_reuse(barriers: Barriers) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = BOUND;
        model.check(move || {
            let reuse = Arc::new(Reuse {
                epoch: Modelled::new(FIRST_EPOCH),
                safe: Modelled::new(0),
                linked: AtomicU64::new(1),
                retired: Mutex::new(None),
                barriers,
            });
            let spawn = |work: fn(&Reuse)| {
                let reuse = Arc::clone(&reuse);
                thread::spawn(move || work(&reuse))
            };
            let threads = [spawn(Reuse::read_twice), spawn(Reuse::unlink)];
            reuse.reuse();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn thing_in_place_is_same_while_recent() {
        model_reuse(ALL);
    }

    #[test]
    #[should_panic(expected = "another thing at the same place")]
    fn reuse_after_tag_without_barrier_is_caught() {
        model_reuse(Barriers { writer: false, ..ALL });
    }

    #[test]
    #[should_panic(expected = "another thing at the same place")]
    fn start_after_first_read_is_caught() {
        model_reuse(Barriers { is_begun_late: true, ..ALL });
    }

    /// Enough preemptions to catch every broken variant below.
    const BOUND: Option<usize> = Some(3);
    const ALL: Barriers = Barriers {
        reader: true,
        writer: true,
        reclaimer: true,
        before_list: true,
        is_tagged_late: false,
        is_begun_late: false,
    };

    #[test]
    fn pinned_readers_item_is_not_freed() {
        model(ALL, true, BOUND);
    }

    #[test]
    fn foreign_tag_is_not_freed_under_pin() {
        model(Barriers { is_tagged_late: true, ..ALL }, true, Some(2));
    }

    #[test]
    #[ignore = "a minute"]
    fn pinned_readers_item_is_never_freed() {
        model(ALL, true, None);
    }

    #[test]
    fn joining_readers_item_is_not_freed() {
        model(ALL, false, BOUND);
    }

    #[test]
    #[ignore = "minutes"]
    fn joining_readers_item_is_never_freed() {
        model(ALL, false, None);
    }

    /// Because of the second of two advances: the first one's barrier comes before the second one's list.
    #[test]
    fn list_from_before_barrier_suffices() {
        model(Barriers { before_list: false, ..ALL }, false, BOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn joining_reader_without_barrier_is_caught() {
        model(Barriers { reader: false, ..ALL }, false, BOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn pin_without_barrier_is_caught() {
        model(Barriers { reader: false, ..ALL }, true, BOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn tag_without_barrier_is_caught() {
        model(Barriers { writer: false, ..ALL }, true, BOUND);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn an_advance_without_a_barrier_is_caught() {
        model(Barriers { reclaimer: false, ..ALL }, true, BOUND);
    }
}
