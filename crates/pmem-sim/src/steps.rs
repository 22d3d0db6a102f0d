//! Steps: what a simulation did, counted and shown to an observer.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::agent::Interposed;
use crate::crashable::ObserverOf;
use crate::sim::StepKind;

thread_local! {
    static IS_UNOBSERVED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`, whose steps are shown to the observer beside alone ([`crate::Crashable::observe_beside`]): they are those of a
/// thread beside the observed one.
pub fn unobserved<R>(work: impl FnOnce() -> R) -> R {
    IS_UNOBSERVED.set(true);
    let done = work();
    IS_UNOBSERVED.set(false);
    done
}

/// Counts the steps of `W` and shows them.
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

    /// Counts a step and shows it to the observer, but for steps that the observer makes; those of [`unobserved`] work to the
    /// observer beside. The caller holds no lock.
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
