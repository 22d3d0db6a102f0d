//! Words and locks that are the checker's if created under a model, and the processor's otherwise. A test can have
//! a function called after every store of a thread. For tables of which a model covers a part (the head of the
//! crate has the reason).

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

thread_local! {
    static IS_MODELLED: Cell<bool> = const { Cell::new(false) };
    static STEP: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// A guard: while it lives, the words and locks that this thread creates are loom's.
#[derive(Debug)]
pub struct Model(());

impl Model {
    /// Starts creating loom's words and locks.
    #[must_use]
    pub fn enter() -> Model {
        IS_MODELLED.set(true);
        Model(())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        IS_MODELLED.set(false);
    }
}

/// Calls `step` after every store of this thread while `work` runs, except stores of `step` itself.
pub fn stepping<R>(step: impl FnMut() + 'static, work: impl FnOnce() -> R) -> R {
    STEP.set(Some(Box::new(step)));
    let done = work();
    STEP.take();
    done
}

/// Calls the step function of [`stepping`], if any, after a store.
pub fn step() {
    let Some(mut step) = STEP.take() else { return };
    step();
    STEP.set(Some(step));
}

/// Defines a word. `native` holds the last stored value, for the word's drop.
macro_rules! word {
    ($what:literal: $name:ident $(<$t:ident>)?, $native:ty, $modelled:ty, $value:ty) => {
        #[doc = $what]
        #[derive(Debug)]
        pub struct $name $(<$t>)? {
            native: $native,
            modelled: Option<$modelled>,
        }

        #[expect(missing_docs, reason = "the atomic has methods of these names")]
        impl $(<$t>)? $name $(<$t>)? {
            pub fn new(value: $value) -> Self {
                let modelled = IS_MODELLED.get().then(|| <$modelled>::new(value));
                $name { native: <$native>::new(value), modelled }
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                self.modelled.as_ref().map_or_else(|| self.native.load(ordering), |word| word.load(ordering))
            }

            pub fn store(&self, value: $value, ordering: Ordering) {
                self.modelled.iter().for_each(|word| word.store(value, ordering));
                self.native.store(value, ordering);
                step();
            }

            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                let before = self.modelled.as_ref().map(|word| word.swap(value, ordering));
                let native = self.native.swap(value, ordering);
                step();
                before.unwrap_or(native)
            }

            pub fn get_mut(&mut self) -> &mut $value {
                self.native.get_mut()
            }
        }
    };
}

word!("A word of 64 bits.": Word, AtomicU64, loom::sync::atomic::AtomicU64, u64);
word!("A flag.": Flag, AtomicBool, loom::sync::atomic::AtomicBool, bool);
word!("A pointer.": Pointer<T>, AtomicPtr<T>, loom::sync::atomic::AtomicPtr<T>, *mut T);

/// A lock that guards data stored elsewhere.
#[derive(Debug)]
pub struct Lock(Either<Mutex<()>, loom::sync::Mutex<()>>);

/// A held lock.
#[derive(Debug)]
pub struct Locked<'a>(
    #[expect(dead_code, reason = "it is held")] Either<MutexGuard<'a, ()>, loom::sync::MutexGuard<'a, ()>>,
);

#[derive(Debug)]
enum Either<N, M> {
    Native(N),
    Modelled(M),
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}

impl Lock {
    /// Creates a free lock.
    #[must_use]
    pub fn new() -> Lock {
        Lock(if IS_MODELLED.get() {
            Either::Modelled(loom::sync::Mutex::new(()))
        } else {
            Either::Native(Mutex::new(()))
        })
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If a thread of the model panicked while it held the lock.
    pub fn lock(&self) -> Locked<'_> {
        Locked(match &self.0 {
            Either::Native(lock) => Either::Native(lock.lock()),
            Either::Modelled(lock) => Either::Modelled(lock.lock().unwrap()),
        })
    }

    /// Returns the held lock, or `None` if another thread holds it.
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        match &self.0 {
            Either::Native(lock) => lock.try_lock().map(|guard| Locked(Either::Native(guard))),
            Either::Modelled(lock) => lock.try_lock().ok().map(|guard| Locked(Either::Modelled(guard))),
        }
    }

    /// Returns true if the lock is held. Not for models.
    pub fn is_locked(&self) -> bool {
        matches!(&self.0, Either::Native(lock) if lock.is_locked())
    }
}

/// Locks of adjacent items, as many as a word has bits. Here each is a separate lock; they are taken in ascending
/// order.
#[derive(Debug)]
pub struct Locks([Lock; u64::BITS as usize]);

/// Some of the locks, held.
#[derive(Debug)]
pub struct HeldLocks<'a>(#[expect(dead_code, reason = "they are held")] Vec<Locked<'a>>);

impl Default for Locks {
    fn default() -> Locks {
        Locks::new()
    }
}

impl Locks {
    /// Creates free locks.
    #[must_use]
    pub fn new() -> Locks {
        Locks(std::array::from_fn(|_| Lock::new()))
    }

    /// Waits for the locks with these numbers.
    pub fn lock<const COUNT: usize>(&self, mut numbers: [usize; COUNT]) -> HeldLocks<'_> {
        numbers.sort_unstable();
        HeldLocks(numbers.into_iter().map(|number| self.0[number].lock()).collect())
    }

    /// Returns the held locks with these numbers, or `None` if any of them is held.
    pub fn try_lock<const COUNT: usize>(&self, mut numbers: [usize; COUNT]) -> Option<HeldLocks<'_>> {
        numbers.sort_unstable();
        numbers.into_iter().map(|number| self.0[number].try_lock()).collect::<Option<_>>().map(HeldLocks)
    }

    /// Takes the locks of all numbers below `count` in ascending order, and holds all of them.
    pub fn lock_in_turn(&self, count: usize) -> Vec<HeldLocks<'_>> {
        (0..count).map(|number| self.lock([number])).collect()
    }

    /// Returns true if all locks with numbers below `count` are held. Not for models.
    pub fn are_held(&self, count: usize) -> bool {
        self.0[..count].iter().all(Lock::is_locked)
    }
}
