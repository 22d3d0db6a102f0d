//! A table that readers use before the index while it is published.
//!
//! The turn is odd while something is published; a reader that finds an even turn uses the index. The turn is raised
//! within the step that publishes: a late reader of the previous turn must not see something that other readers, with
//! an even turn, do not see yet. The turn is also raised before something is withdrawn: by then the index has all of
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use word::Word;

/// A place where something is published.
pub(crate) trait Place {
    type It;
    /// Publishes `it`, or nothing, and runs `then` before a reader can see that.
    fn put(&self, it: Option<Arc<Self::It>>, then: impl FnOnce());
    /// Returns the published object.
    fn get(&self) -> Option<Arc<Self::It>>;
}

impl<T> Place for RwLock<Option<Arc<T>>> {
    type It = T;

    fn put(&self, it: Option<Arc<T>>, then: impl FnOnce()) {
        let mut place = self.write();
        *place = it;
        then();
    }

    fn get(&self) -> Option<Arc<T>> {
        self.read().clone()
    }
}

/// A published object, or nothing. Only one thread at a time publishes and withdraws.
pub(crate) struct Shown<P, W = AtomicU64> {
    turn: W,
    place: P,
}

impl<P: Default> Default for Shown<P> {
    fn default() -> Shown<P> {
        Shown { turn: AtomicU64::new(0), place: P::default() }
    }
}

impl<P: Place, W: Word> Shown<P, W> {
    /// Returns the turn, which changes when something is published, and when it is withdrawn.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Returns true if something is published in this turn.
    pub(crate) fn is_shown(&self, turn: u64) -> bool {
        turn % 2 == 1
    }

    /// Returns the turn, and the object that is published in it.
    pub(crate) fn now(&self) -> (u64, Option<Arc<P::It>>) {
        let turn = self.turn();
        (turn, if self.is_shown(turn) { self.place.get() } else { None })
    }

    pub(crate) fn show(&self, it: P::It) {
        self.place.put(Some(Arc::new(it)), || _ = self.turn.fetch_add(1, Ordering::AcqRel));
    }

    pub(crate) fn take_away(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        self.place.put(None, || ());
    }
}

/// Every interleaving of a reader and a thread that publishes one object after another, and a broken variant that
/// raises the turn too late.
#[cfg(test)]
mod interleavings {
    use std::panic::catch_unwind;

    use loom::sync::RwLock;
    use loom::sync::atomic::AtomicU64 as Number;
    use loom::thread;
    use word::model::Modelled;

    use super::*;

    /// The model's place. The broken variant runs `then` when other threads may already read.
    struct Modelling<const IS_BROKEN: bool>(RwLock<Option<Arc<u64>>>);

    impl<const IS_BROKEN: bool> Place for Modelling<IS_BROKEN> {
        type It = u64;

        fn put(&self, it: Option<Arc<u64>>, then: impl FnOnce()) {
            let mut place = self.0.write().unwrap();
            *place = it;
            if IS_BROKEN {
                drop(place);
                then();
            } else {
                then();
                drop(place);
            }
        }

        fn get(&self) -> Option<Arc<u64>> {
            self.0.read().unwrap().clone()
        }
    }

    /// A published number, and the index that is updated while the number is published.
    struct Store<const IS_BROKEN: bool> {
        shown: Shown<Modelling<IS_BROKEN>, Modelled>,
        index: Number,
    }

    impl<const IS_BROKEN: bool> Store<IS_BROKEN> {
        fn write(&self, number: u64) {
            self.shown.show(number);
            self.index.store(number, Ordering::Release);
            self.shown.take_away();
        }

        fn read(&self) -> u64 {
            let (_, shown) = self.shown.now();
            shown.map_or_else(|| self.index.load(Ordering::Acquire), |shown| *shown)
        }
    }

    /// Asserts that the second of two reads sees no older number.
    fn never_falls<const IS_BROKEN: bool>() {
        let shown = Shown { turn: Modelled::new(0), place: Modelling::<IS_BROKEN>(RwLock::new(None)) };
        let store = loom::sync::Arc::new(Store { shown, index: Number::new(0) });
        let theirs = loom::sync::Arc::clone(&store);
        let writer = thread::spawn(move || (1..3).for_each(|number| theirs.write(number)));
        let read = [store.read(), store.read()];
        assert!(read[0] <= read[1], "{read:?}");
        writer.join().unwrap();
    }

    #[test]
    fn readers_see_increasing_numbers() {
        loom::model(never_falls::<false>);
    }

    #[test]
    fn turn_that_is_raised_late_is_caught() {
        assert!(catch_unwind(|| loom::model(never_falls::<true>)).is_err());
    }
}
