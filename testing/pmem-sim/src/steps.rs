//! Counts the steps of a simulation and calls observers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::agent::Interposed;
use crate::crashable::ObserverOf;
use crate::sim::StepKind;

thread_local! {
    static IS_UNOBSERVED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` as another thread, concurrent to the observed one: its steps are shown only to the observer of
/// [`crate::Crashable::observe_beside`].
pub fn unobserved<R>(work: impl FnOnce() -> R) -> R {
    IS_UNOBSERVED.set(true);
    let done = work();
    IS_UNOBSERVED.set(false);
    done
}

/// Counts the steps of `W` and calls its observers.
pub(crate) struct Steps<W> {
    observer: Mutex<Option<ObserverOf<W>>>,
    beside: Mutex<Option<ObserverOf<W>>>,
    count: AtomicU64,
}

impl<W> Default for Steps<W> {
    fn default() -> Steps<W> {
        Steps { observer: Mutex::new(None), beside: Mutex::new(None), count: AtomicU64::new(0) }
    }
}

impl<W> Steps<W> {
    pub(crate) fn observe(&self, observer: ObserverOf<W>) {
        *self.observer.lock() = Some(observer);
    }

    pub(crate) fn observe_beside(&self, observer: ObserverOf<W>) {
        *self.beside.lock() = Some(observer);
    }

    pub(crate) fn unobserve(&self) {
        let observers = [self.observer.lock().take(), self.beside.lock().take()];
        drop(observers);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a step and calls the observer, except for steps that the observer itself makes. Steps of
    /// [`unobserved`] work go to the second observer. The caller holds no lock.
    pub(crate) fn step(&self, world: &W, kind: StepKind) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let place = if IS_UNOBSERVED.get() { &self.beside } else { &self.observer };
        let Some(mut observer) = place.lock().take() else { return };
        let interposed = Interposed::enter();
        observer(world, kind);
        drop(interposed);
        place.lock().get_or_insert(observer);
    }
}
