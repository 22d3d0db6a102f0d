//! A writer, and a thread that writes the copies (`signals`). These broken variants must be caught: a writer that
//! trusts a copy before its signal, a thread that sets the signal without writing, one that shows an item that is
//! not durable, a request that is visible before the words of the copy, and a write that did not take place but
//! shows the handed-over copy. One preemption suffices to catch all; two take minutes: `cargo test -p hikv-index
//! --lib cached_table::tests::model::served -- --ignored`.

use std::sync::atomic::Ordering;

use super::super::super::signals::Signals;
use super::*;

macro_rules! variant {
    ($name:ident, $what:ident) => {
        struct $name;

        impl Weakening for $name {}

        impl Variant for $name {
            const $what: bool = true;
        }
    };
}

variant!(ServesShown, SERVES_SHOWN);
variant!(CompletesUnwritten, COMPLETES_UNWRITTEN);
variant!(ShowsUnsignalled, SHOWS_UNSIGNALLED);
variant!(ShowsUnchanged, SHOWS_UNCHANGED);

struct HandsOverUnordered;

impl Weakening for HandsOverUnordered {
    fn store(_asked: Ordering) -> Ordering {
        Ordering::Relaxed
    }
}

impl Variant for HandsOverUnordered {}

impl<T: Variant> Store<T> {
    fn served() -> Arc<Store<T>> {
        let store = Store::<T>::new();
        assert!(store.cache.signals.set(Signals::of(1)).is_ok());
        store
    }

    /// Puts item 1, before other threads run.
    fn put_unserved(&self) {
        let mut write = self.cache.begin(KEY);
        copy(1, |copy| write.hand_off(copy));
        [&self.held, &self.durable, &self.acknowledged].into_iter().for_each(|word| word.store(1, SeqCst));
        copy(1, |copy| write.put(copy));
    }

    /// Like `CachedTable::serve`, or a broken variant of it.
    fn serve(&self) {
        let Some(request) = self.cache.signals.get().and_then(|signals| signals.take(0)) else { return };
        if !T::SERVES_SHOWN && !T::COMPLETES_UNWRITTEN {
            return self.cache.serve_one(request);
        }
        let own = request.copy();
        if T::COMPLETES_UNWRITTEN || self.cache.enter(own.key(), &own.copy(), |_| true) {
            request.complete();
        }
    }

    /// Begins a write that does not take place, of an item that is never in the store.
    fn put_in_vain(&self) {
        let _lock = self.lock.lock().unwrap();
        let mut write = self.cache.begin(KEY);
        copy(NEVER_THERE, |copy| write.hand_off(copy));
        if T::SHOWS_UNCHANGED {
            write.end_handed();
            write.show();
        } else {
            write.unchanged();
        }
    }
}

const NEVER_THERE: u64 = 50;

/// Runs `write` on a store that has item 1 in its table, while a thread serves the table and reads.
fn served_beside<T: Variant>(preemption_count: usize, write: fn(&Store<T>), held: u64) {
    explore(preemption_count, move || {
        let store = Store::<T>::served();
        store.put_unserved();
        let server = Arc::clone(&store);
        let server = thread::spawn(move || {
            server.serve();
            server.get();
        });
        write(&store);
        server.join().unwrap();
        assert_eq!(store.get(), held);
    });
}

fn a_put_is_served<T: Variant>(preemption_count: usize) {
    served_beside::<T>(preemption_count, |store| store.put(false), 2);
}

fn a_put_in_vain_is_served<T: Variant>(preemption_count: usize) {
    served_beside::<T>(preemption_count, Store::put_in_vain, 1);
}

#[test]
fn foreign_write_is_current_value() {
    a_put_is_served::<Sound>(1);
    a_put_in_vain_is_served::<Sound>(1);
}

/// With another preemption; and with another writer at the same time, so that at most one of them has the signal.
#[test]
#[ignore = "many minutes"]
fn last_served_write_stays() {
    a_put_is_served::<Sound>(2);
    a_put_in_vain_is_served::<Sound>(2);
    explore(2, || {
        let store = Store::<Sound>::served();
        let (server, writer) = (Arc::clone(&store), Arc::clone(&store));
        let (server, writer) = (thread::spawn(move || server.serve()), thread::spawn(move || writer.put(false)));
        store.put(false);
        writer.join().unwrap();
        server.join().unwrap();
        assert_eq!(store.get(), 2);
    });
}

#[test]
#[should_panic(expected = "was acknowledged before")]
fn copy_trusted_without_signal_is_caught() {
    a_put_is_served::<ShowsUnsignalled>(1);
}

#[test]
#[should_panic(expected = "was acknowledged before")]
fn signal_without_its_copy_is_caught() {
    a_put_is_served::<CompletesUnwritten>(1);
}

#[test]
#[should_panic(expected = "a read returned a value that may be lost")]
fn copy_visible_while_written_is_caught() {
    a_put_is_served::<ServesShown>(1);
}

#[test]
#[should_panic]
fn request_before_its_words_is_caught() {
    a_put_is_served::<HandsOverUnordered>(1);
}

#[test]
#[should_panic(expected = "a read returned a value that may be lost")]
fn failed_write_showing_copy_is_caught() {
    a_put_in_vain_is_served::<ShowsUnchanged>(1);
}
