//! A small lock-free buffer: one thread puts things in, and the holder of a lock takes them out.
//!
//! # Invariants
//! `taken <= filled <= taken + PLACE_COUNT`. Each place from `taken` to `filled` holds a thing; the other places
//! are empty. Only the owner puts things and advances `filled`. Only the holder of a lock, which the caller
//! chooses, takes things and advances `taken`.
//!
//! # Why it is sound
//! A thing is stored before `filled` moves past it (Release), and taken after the taker saw that (Acquire). The
//! owner reuses a place only after it saw `taken` beyond that place (Acquire); the taker stores `taken` (Release)
//! once the thing is out.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicU64, Ordering};

use word::Word;

/// Capacity of an inbox, in things.
pub(crate) const PLACE_COUNT: usize = 8;

/// A buffer of at most [`PLACE_COUNT`] things.
pub(crate) struct Inbox<T, W: Word = AtomicU64> {
    filled: W,
    taken: W,
    places: [UnsafeCell<MaybeUninit<T>>; PLACE_COUNT],
}

// SAFETY: things move from the thread that puts them to the thread that takes them; no thread accesses them in
// between.
unsafe impl<T: Send, W: Word + Sync> Sync for Inbox<T, W> {}

impl<T, W: Word> fmt::Debug for Inbox<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T, W: Word> Inbox<T, W> {
    pub(crate) fn new() -> Inbox<T, W> {
        let place = || UnsafeCell::new(MaybeUninit::uninit());
        Inbox { filled: W::new(0), taken: W::new(0), places: std::array::from_fn(|_| place()) }
    }

    /// Puts a thing into the inbox, or returns it as `Err` if the inbox is full.
    ///
    /// # Safety
    /// The caller is the owner: no other thread puts anything at the same time, and an earlier owner's puts
    /// happened before.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, thing: T) -> Result<(), T> {
        let filled = self.filled.load(Ordering::Relaxed);
        if filled - self.taken.load(Ordering::Acquire) == PLACE_COUNT as u64 {
            return Err(thing);
        }
        // SAFETY: the place is empty, and only the owner, which the caller is, reaches an empty one.
        unsafe { (*self.place(filled)).write(thing) };
        self.filled.store(filled + 1, Ordering::Release);
        Ok(())
    }

    /// Takes all things out, oldest first, and passes each to `each`.
    ///
    /// # Safety
    /// The caller holds the lock under which things are taken, and `each` does not panic: the thing would still be
    /// there.
    pub(crate) unsafe fn take_all(&self, mut each: impl FnMut(T)) {
        let filled = self.filled.load(Ordering::Acquire);
        for number in self.taken.load(Ordering::Relaxed)..filled {
            // SAFETY: the place is filled, and only the taker, which the caller is, reaches a filled one.
            each(unsafe { (*self.place(number)).assume_init_read() });
            self.taken.store(number + 1, Ordering::Release);
        }
    }

    /// Passes a reference to each thing to `each`, oldest first, and leaves the things in the inbox.
    ///
    /// # Safety
    /// The caller holds the lock under which things are taken.
    pub(crate) unsafe fn visit_all(&self, mut each: impl FnMut(&T)) {
        let filled = self.filled.load(Ordering::Acquire);
        for number in self.taken.load(Ordering::Relaxed)..filled {
            // SAFETY: as for `take_all`; filled places do not change.
            each(unsafe { (*self.place(number)).assume_init_ref() });
        }
    }

    /// Returns the number of things in the inbox, as of some recent moment.
    pub(crate) fn len(&self) -> u64 {
        let taken = self.taken.load(Ordering::Acquire);
        self.filled.load(Ordering::Acquire) - taken
    }

    #[inline(always)]
    fn place(&self, number: u64) -> *mut MaybeUninit<T> {
        self.places[number as usize % PLACE_COUNT].get()
    }
}

impl<T, W: Word> Drop for Inbox<T, W> {
    fn drop(&mut self) {
        if mem::needs_drop::<T>() {
            // SAFETY: no other thread reaches the inbox any more.
            unsafe { self.take_all(drop) };
        }
    }
}

/// Explores every interleaving of an owner and a taker. Each place stands for memory that loom watches.
#[cfg(all(test, not(miri)))]
mod tests {
    use loom::cell::UnsafeCell as WatchedUnsafeCell;
    use loom::sync::{Arc, Mutex};
    use loom::thread;
    use word::model::{Unchanged, Weakened, Weakening, explore};

    use super::*;

    /// Number of things put: one more than the capacity, so that one place is reused.
    const THING_COUNT: u64 = PLACE_COUNT as u64 + 1;

    struct World<W: Word> {
        inbox: Inbox<u64, W>,
        lock: Mutex<Vec<u64>>,
        memory: [WatchedUnsafeCell<u64>; PLACE_COUNT],
    }

    impl<W: Word> World<W> {
        fn of(&self, thing: u64) -> &WatchedUnsafeCell<u64> {
            &self.memory[thing as usize % PLACE_COUNT]
        }

        fn put(&self, thing: u64) {
            if self.inbox.len() == PLACE_COUNT as u64 {
                self.take();
            }
            // SAFETY: the place was seen to be empty; loom checks whether that suffices.
            self.of(thing).with_mut(|memory| unsafe { *memory = thing });
            // SAFETY: one thread puts.
            unsafe { self.inbox.put(thing) }.expect("there was space");
        }

        fn take(&self) {
            let mut taken = self.lock.lock().unwrap();
            // SAFETY: under the lock.
            unsafe {
                self.inbox.take_all(|thing| {
                    // SAFETY: as above.
                    self.of(thing).with(|memory| assert_eq!(*memory, thing));
                    taken.push(thing);
                });
            }
        }
    }

    fn model<V: Weakening>() {
        explore(2, || {
            let world = Arc::new(World::<Weakened<V>> {
                inbox: Inbox::new(),
                lock: Mutex::default(),
                memory: std::array::from_fn(|_| WatchedUnsafeCell::new(u64::MAX)),
            });
            (0..PLACE_COUNT as u64 - 1).for_each(|thing| world.put(thing));
            let taker = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.take())
            };
            (PLACE_COUNT as u64 - 1..THING_COUNT).for_each(|thing| world.put(thing));
            taker.join().unwrap();
            world.take();
            assert!(world.lock.lock().unwrap().iter().copied().eq(0..THING_COUNT), "lost, or out of order");
        });
    }

    #[test]
    fn things_are_taken_once_in_order() {
        model::<Unchanged>();
    }

    struct Relaxed;

    impl Weakening for Relaxed {
        fn store(_: Ordering) -> Ordering {
            Ordering::Relaxed
        }
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn an_inbox_without_its_orders_is_caught() {
        model::<Relaxed>();
    }

    #[test]
    fn untaken_items_are_dropped_with_inbox() {
        let thing = std::sync::Arc::new(());
        let inbox = Inbox::<_, AtomicU64>::new();
        // SAFETY: one thread.
        unsafe { inbox.put(std::sync::Arc::clone(&thing)) }.expect("there is space");
        drop(inbox);
        assert_eq!(std::sync::Arc::strong_count(&thing), 1);
    }
}
