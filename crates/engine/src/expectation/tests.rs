//! Every interleaving of a writer, a thread that steps and then stops, and the thread that watches time; and broken
//! variants that lose a key.

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;
use word::model::{InTwoSteps, Modelled, Weakened, Weakening, explore, is_caught};

use super::*;

/// The key's value: absent, or one that expires.
const PUT: usize = 1;

/// A store of one key, with one walk at a time.
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

    /// Begins a walk, or continues it. The first step meets the key; the second ends the walk.
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

/// The thread that watches time steps and sleeps while one key is put. Another thread takes `help_count` steps and
/// stops. At the end a step is requested, or the first thread sleeps no longer than a rest.
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

/// A broken variant: no fence orders a read of the word after earlier writes.
struct NoFence;

impl Weakening for NoFence {
    fn has_fence(_asked: Ordering) -> bool {
        false
    }
}

#[test]
fn variants_that_lose_a_key_are_caught() {
    let variants: [fn(); 2] = [|| a_key_is_put::<Weakened<NoFence>>(0), || a_key_is_put::<InTwoSteps>(0)];
    assert!(variants.into_iter().all(|variant| is_caught(3, variant)));
}
