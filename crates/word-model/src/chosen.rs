//! What stands for `super` in tests: words and locks that are loom's if made under a model, and that tell a
//! test of every store of its thread.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

thread_local! {
    static IS_MODELLED: Cell<bool> = const { Cell::new(false) };
    static STEP: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// While it lives, what this thread makes is loom's.
pub(crate) struct Model(());

impl Model {
    pub(crate) fn enter() -> Model {
        IS_MODELLED.set(true);
        Model(())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        IS_MODELLED.set(false);
    }
}

/// Calls `step` after every store of this thread while `work` runs, but for those of `step` itself.
pub(crate) fn stepping<R>(step: impl FnMut() + 'static, work: impl FnOnce() -> R) -> R {
    STEP.set(Some(Box::new(step)));
    let done = work();
    STEP.take();
    done
}

/// Something was stored.
pub(crate) fn step() {
    let Some(mut step) = STEP.take() else { return };
    step();
    STEP.set(Some(step));
}

/// A word: `native` holds what was stored last, for the word's drop.
macro_rules! word {
    ($name:ident $(<$t:ident>)?, $native:ty, $modelled:ty, $value:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name $(<$t>)? {
            native: $native,
            modelled: Option<$modelled>,
        }

        impl $(<$t>)? $name $(<$t>)? {
            pub(crate) fn new(value: $value) -> Self {
                let modelled = IS_MODELLED.get().then(|| <$modelled>::new(value));
                $name { native: <$native>::new(value), modelled }
            }

            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                self.modelled.as_ref().map_or_else(|| self.native.load(ordering), |word| word.load(ordering))
            }

            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                self.modelled.iter().for_each(|word| word.store(value, ordering));
                self.native.store(value, ordering);
                step();
            }

            #[allow(dead_code, reason = "not of every kind of word")]
            pub(crate) fn swap(&self, value: $value, ordering: Ordering) -> $value {
                let before = self.modelled.as_ref().map(|word| word.swap(value, ordering));
                let native = self.native.swap(value, ordering);
                step();
                before.unwrap_or(native)
            }

            #[allow(dead_code, reason = "not of every kind of word")]
            pub(crate) fn get_mut(&mut self) -> &mut $value {
                self.native.get_mut()
            }
        }
    };
}

word!(Word, AtomicU64, loom::sync::atomic::AtomicU64, u64);
word!(Flag, AtomicBool, loom::sync::atomic::AtomicBool, bool);
word!(Pointer<T>, AtomicPtr<T>, loom::sync::atomic::AtomicPtr<T>, *mut T);

/// A lock.
#[derive(Debug)]
pub(crate) enum Lock {
    Native(Mutex<()>),
    Modelled(loom::sync::Mutex<()>),
}

/// A held lock.
pub(crate) enum Locked<'a> {
    Native { _guard: MutexGuard<'a, ()> },
    Modelled { _guard: loom::sync::MutexGuard<'a, ()> },
}

impl Lock {
    pub(crate) fn new() -> Lock {
        if IS_MODELLED.get() { Lock::Modelled(loom::sync::Mutex::new(())) } else { Lock::Native(Mutex::new(())) }
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        match self {
            Lock::Native(lock) => Locked::Native { _guard: lock.lock() },
            Lock::Modelled(lock) => Locked::Modelled { _guard: lock.lock().unwrap() },
        }
    }

    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        match self {
            Lock::Native(lock) => lock.try_lock().map(|guard| Locked::Native { _guard: guard }),
            Lock::Modelled(lock) => lock.try_lock().ok().map(|guard| Locked::Modelled { _guard: guard }),
        }
    }

    /// Whether it is held. Not for models.
    pub(crate) fn is_locked(&self) -> bool {
        matches!(self, Lock::Native(lock) if lock.is_locked())
    }
}
