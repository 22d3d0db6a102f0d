//! Every interleaving of a writer, a thread that steps and goes away, and the thread that watches time; and twins that lose a key.

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;
use word_model::{InTwoSteps, Modelled, Weakened, Weakening, explore, is_caught};

use super::*;

/// The key's value: gone, or one that expires.
const PUT: usize = 1;

/// A store of one key, whose walks are one at a time.
struct Store<W> {
    key: AtomicUsize,
    is_walking: Mutex<bool>,
    expectation: Expectation<W>,
}

impl<W: Word> Store<W> {
    fn new() -> Arc<Store<W>> {
        let (key, is_walking, expectation) = (AtomicUsize::new(0), Mutex::new(false), Expectation::default());
        Arc::new(Store { key, is_walking, expectation })
    }

    /// Begins a walk, or goes on with it; the key is met in the first step, and in the second the walk ends.
    fn step(&self) {
        let mut is_walking = self.is_walking.lock().unwrap();
        if *is_walking {
            *is_walking = false;
            self.expectation.end();
        } else if self.expectation.begin() {
            *is_walking = true;
            if self.key.load(Ordering::Relaxed) == PUT {
                self.expectation.expect();
            }
        }
    }
}

/// The thread that watches time steps and sleeps, while one key is put, and another thread steps so often, and goes away: in the end a
/// step is asked for, or the one sleeps no longer than a rest.
fn a_key_is_put<W: Word + Send + Sync + 'static>(help_count: usize) {
    explore(3, move || {
        let store = Store::<W>::new();
        let (helped, written) = (Arc::clone(&store), Arc::clone(&store));
        let helper = thread::spawn(move || (0..help_count).for_each(|_| helped.step()));
        let writer = thread::spawn(move || {
            written.key.store(PUT, Ordering::Relaxed);
            written.expectation.expect();
            written.expectation.is_wanted()
        });
        store.step();
        store.step();
        let slept = store.expectation.sleep_time();
        helper.join().unwrap();
        let is_asked = writer.join().unwrap();
        assert!(slept.is_some() || is_asked, "the thread sleeps for ever, and the key stays");
    });
}

#[test]
fn key_that_expires_is_never_slept_over() {
    (0..3).for_each(a_key_is_put::<Modelled>);
}

/// Nothing orders a look behind what was written before.
struct NoFence;

impl Weakening for NoFence {
    fn has_fence(_asked: Ordering) -> bool {
        false
    }
}

#[test]
fn twins_that_lose_a_key_are_caught() {
    let twins: [fn(); 2] = [|| a_key_is_put::<Weakened<NoFence>>(0), || a_key_is_put::<InTwoSteps>(0)];
    assert!(twins.into_iter().all(|twin| is_caught(3, twin)));
}
