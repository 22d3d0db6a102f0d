//! The steps of windows and gates, independent of where the words are stored and how barriers are made.
//!
//! A *window* is one word per thread, the number of a gate or [`ALL`]. A *gate* is one word per tree, [`OPEN`] or
//! [`CLOSED`]. Writers execute *light* barriers, closers *heavy* ones; a light and a heavy barrier order accesses as
//! two sequentially consistent fences would (`epoch::heavy_barrier`).
//!
//! | step | writer | closer |
//! |---|---|---|
//! | 1 | store the gate's number in the window, light barrier | take the gate lock |
//! | 2 | load the gate; if it is closed: shut the window, take the gate lock, open the window, release the lock | close the gate, heavy barrier |
//! | 3 | read the tree's id, and write | wait until no window shows the gate's number |
//! | 4 | shut the window | read and write as if alone; set a new id |
//! | 5 | | open the gate, then release the lock |
//!
//! # Why it is sound
//! While a closer is in step 4, no writer of the tree is in step 3:
//! - A writer whose light barrier comes before the heavy one has stored its window before, so the closer sees that
//!   store or a later one of the same thread. If the closer sees the window shut, it also sees everything that the
//!   writer wrote, because shutting releases and the closer's load acquires.
//! - A writer whose light barrier comes after the heavy one loads the gate after it was closed. It finds it closed, or
//!   opened in step 5, which releases everything that the closer did.
//! - A writer that opens its window under the gate lock does so while every gate is open, because only the lock's
//!   holder closes gates, and opens them before it releases the lock. The next closer acquires the lock afterwards, and
//!   sees the window.
//! - A thread that is not in the list of windows when the closer reads it (after the heavy barrier) opens its first
//!   window later, as in the second case.
//!
//! A writer that may change any tree opens a window for [`ALL`], and loads the gate *of all* in step 2, which a closer
//! closes in step 2 with the first of its gates and opens in step 5 with them. So the argument holds for it, with the
//! gate of all in the place of the tree's.
//!
//! The tree's id that a writer reads in step 3 stays the same until its window is shut, because ids change in step 4.

use std::sync::atomic::Ordering;

use word::Word;

/// The value of the window of a thread that does not write.
pub(crate) const SHUT: u64 = 0;
/// The value of a window that names every gate.
pub(crate) const ALL: u64 = u64::MAX;
/// The value of the window of a thread that runs the body of a transaction, and writes nothing. It names no gate.
pub(crate) const BODY: u64 = u64::MAX - 1;
/// The value of the window of a thread that holds a gate lock. It names no gate.
pub(crate) const CLOSER: u64 = u64::MAX - 2;

/// The word of an open gate.
pub(crate) const OPEN: u64 = 0;
/// The word of a closed gate.
const CLOSED: u64 = 1;

/// Does the writer's step 1.
#[inline(always)]
pub(crate) fn open<W: Word>(window: &W, number: u64, light_barrier: impl FnOnce()) {
    window.store(number, Ordering::Relaxed);
    light_barrier();
}

/// Returns true unless the gate is closed.
#[inline(always)]
pub(crate) fn is_open<W: Word>(gate: &W) -> bool {
    gate.load(Ordering::Acquire) == OPEN
}

/// Shuts the window, or sets it back to the value of an outer write.
#[inline(always)]
pub(crate) fn shut<W: Word>(window: &W, outer: u64) {
    window.store(outer, Ordering::Release);
}

/// Closes the gate in the closer's step 2. The heavy barrier follows.
pub(crate) fn close<W: Word>(gate: &W) {
    gate.store(CLOSED, Ordering::SeqCst);
}

/// Returns true if the window shows the gate's number, and the closer has to wait.
pub(crate) fn shows<W: Word>(window: &W, number: u64) -> bool {
    let window = window.load(Ordering::Acquire);
    window == number || window == ALL
}

/// Does the first half of the closer's step 5.
pub(crate) fn reopen<W: Word>(gate: &W) {
    gate.store(OPEN, Ordering::Release);
}

/// Explores every interleaving of writers and closers, with the reorderings that the memory model allows. Fences model
/// a pair of a light and a heavy barrier. Not run by Miri: loom switches stacks in assembly.
#[cfg(all(test, not(miri)))]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::sync::{Arc, Mutex};
    use loom::thread;
    use word::model::Modelled;

    use super::*;

    const NUMBER: u64 = 3;

    /// The order and the barriers of the protocol; each broken variant changes one.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Variant {
        Whole,
        WriterWithoutBarrier,
        CloserWithoutBarrier,
        WindowAfterGate,
        WindowsBeforeGate,
        WindowsNotAwaited,
        ShutBeforeWriting,
        LockReleasedBeforeWindow,
        LockReleasedBeforeGate,
        GateOfAllLeftOpen,
    }

    use Variant::*;

    /// A tree: its id, and the number of writes.
    struct World {
        gate: Modelled,
        all: Modelled,
        /// The writer may change any tree.
        writes_any: bool,
        window: Modelled,
        /// Nonzero if the writer's window is in the list of windows.
        is_listed: AtomicU64,
        lock: Mutex<()>,
        contents: UnsafeCell<(u64, u64)>,
        variant: Variant,
    }

    impl World {
        fn new(variant: Variant, is_listed: bool, writes_any: bool) -> World {
            World {
                gate: Modelled::new(OPEN),
                all: Modelled::new(OPEN),
                writes_any,
                window: Modelled::new(SHUT),
                is_listed: AtomicU64::new(u64::from(is_listed)),
                lock: Mutex::new(()),
                contents: UnsafeCell::new((0, 0)),
                variant,
            }
        }

        fn open_window(&self) {
            open(&self.window, if self.writes_any { ALL } else { NUMBER }, || {
                if self.variant != WriterWithoutBarrier {
                    fence(Ordering::SeqCst);
                }
            });
        }

        fn write(&self) {
            if self.is_listed.load(Ordering::Relaxed) == 0 {
                self.is_listed.fetch_add(1, Ordering::AcqRel);
            }
            if self.variant != WindowAfterGate {
                self.open_window();
            }
            if is_open(if self.writes_any { &self.all } else { &self.gate }) {
                if self.variant == WindowAfterGate {
                    self.open_window();
                }
            } else {
                shut(&self.window, SHUT);
                let lock = self.lock.lock().unwrap();
                let lock = (self.variant != LockReleasedBeforeWindow).then_some(lock);
                self.open_window();
                drop(lock);
            }
            if self.variant == ShutBeforeWriting {
                shut(&self.window, SHUT);
            }
            // SAFETY: the window is open; loom checks whether that suffices.
            self.contents.with_mut(|contents| unsafe { (*contents).1 += 1 });
            shut(&self.window, SHUT);
        }

        fn close(&self, new_id: u64) {
            let lock = self.lock.lock().unwrap();
            let barrier = || {
                if self.variant != CloserWithoutBarrier {
                    fence(Ordering::SeqCst);
                }
            };
            let wait = || {
                while self.is_listed.load(Ordering::Acquire) == 1 && shows(&self.window, NUMBER) {
                    thread::yield_now();
                }
            };
            let close = || {
                close(&self.gate);
                if self.variant != GateOfAllLeftOpen {
                    close(&self.all);
                }
            };
            match self.variant {
                WindowsBeforeGate => {
                    barrier();
                    wait();
                    close();
                }
                WindowsNotAwaited => {
                    close();
                    barrier();
                }
                _ => {
                    close();
                    barrier();
                    wait();
                }
            }
            let lock = (self.variant != LockReleasedBeforeGate).then_some(lock);
            // SAFETY: the gate is closed and no window shows it; loom checks whether that suffices.
            self.contents.with_mut(|contents| unsafe { *contents = (new_id, (*contents).1 + 1) });
            reopen(&self.gate);
            reopen(&self.all);
            drop(lock);
        }
    }

    /// Explores all runs of a writer of two writes and a closer, with at most three preemptions, and of a second closer
    /// if `closers` is 2.
    fn model(variant: Variant, is_listed: bool, closers: u64, writes_any: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let world = Arc::new(World::new(variant, is_listed, writes_any));
            let spawn = |work: Box<dyn FnOnce(&World) + Send>| {
                let world = Arc::clone(&world);
                thread::spawn(move || work(&world))
            };
            let mut threads = vec![spawn(Box::new(|world| {
                world.write();
                world.write();
            }))];
            if closers == 2 {
                threads.push(spawn(Box::new(|world| world.close(9))));
            }
            world.close(if closers == 2 { 9 } else { 2 });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn closer_is_alone() {
        model(Whole, true, 1, false);
    }

    #[test]
    fn closer_excludes_joining_thread() {
        model(Whole, false, 1, false);
    }

    #[test]
    fn closer_excludes_any_tree_writer() {
        model(Whole, true, 1, true);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn gate_of_all_left_open_is_caught() {
        model(GateOfAllLeftOpen, true, 1, true);
    }

    macro_rules! caught {
        ($($name:ident: $variant:expr, $closers:literal, $expected:literal;)*) => {$(
            #[test]
            #[should_panic(expected = $expected)]
            fn $name() {
                model($variant, true, $closers, false);
            }
        )*};
    }

    caught! {
        window_without_barrier_is_caught: WriterWithoutBarrier, 1, "Causality violation";
        closing_without_barrier_is_caught: CloserWithoutBarrier, 1, "Causality violation";
        window_opened_after_gate_is_caught: WindowAfterGate, 1, "Causality violation";
        windows_read_before_gate_is_caught: WindowsBeforeGate, 1, "Causality violation";
        windows_not_awaited_is_caught: WindowsNotAwaited, 1, "Causality violation";
        window_shut_before_writing_is_caught: ShutBeforeWriting, 1, "Causality violation";
        lock_released_before_window_is_caught: LockReleasedBeforeWindow, 2, "Causality violation";
        lock_released_before_gate_is_caught: LockReleasedBeforeGate, 2, "Causality violation";
    }
}
