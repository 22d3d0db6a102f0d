//! Publishes like the medium: under the buffer's lock the entry is appended, its place set and the word stored;
//! then the entry counts as appended. A reader that loads the word may report it when the log is synced up to the
//! word's place.

use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Mutex};
use loom::thread;
use word::model::Modelled;

use super::super::Published;

/// Length of an entry in the log.
const ENTRY_BYTES: u64 = 24;

/// A step that a broken variant gets wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The place is set after the word.
    NotedLate,
    /// The word is stored without an order.
    StoredRelaxed,
    /// The place has the position at which the entry begins.
    NotedShort,
    /// The thread that syncs for askers reads the end of the log without the lock.
    SyncedBesideLock,
}

/// Two items that share a place: each may find the other's position.
struct Log {
    buffer: Mutex<()>,
    appended: AtomicU64,
    synced: AtomicU64,
    published: Published<Modelled, 1>,
    words: [AtomicU64; 2],
    broken: Broken,
}

fn key(item: usize) -> u64 {
    (item as u64 + 1) * 16
}

impl Log {
    fn new(broken: Broken) -> Log {
        Log {
            buffer: Mutex::new(()),
            appended: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            published: Published::new(),
            words: [0, 1].map(|_| AtomicU64::new(0)),
            broken,
        }
    }

    fn publish(&self, item: usize) {
        let append = self.buffer.lock().unwrap();
        let start = self.appended.load(Ordering::Relaxed);
        let end = start + ENTRY_BYTES;
        let note = || self.published.note(key(item), if self.broken == Broken::NotedShort { start } else { end });
        if self.broken != Broken::NotedLate {
            note();
        }
        let order = if self.broken == Broken::StoredRelaxed { Ordering::Relaxed } else { Ordering::Release };
        // The word's value is the log's position behind its entry.
        self.words[item].store(end, order);
        if self.broken == Broken::NotedLate {
            note();
        }
        self.appended.fetch_add(ENTRY_BYTES, Ordering::Release);
        drop(append);
    }

    /// Writes out and syncs.
    fn sync(&self) {
        let lock = (self.broken != Broken::SyncedBesideLock).then(|| self.buffer.lock().unwrap());
        let end = self.appended.load(Ordering::Acquire);
        drop(lock);
        self.synced.fetch_max(end, Ordering::Release);
    }

    /// Asserts that a reader that finds a word reports the word only once it is durable, and always after the
    /// requested sync.
    fn read(&self, item: usize) {
        let seen = self.words[item].load(Ordering::Acquire);
        if seen != 0 {
            let position = self.published.position(key(item));
            assert!(position >= seen, "told too early");
            self.sync();
            assert!(self.synced.load(Ordering::Acquire) >= position, "never told");
        }
    }
}

/// Two writers and a reader.
fn model(broken: Broken) {
    loom::model(move || {
        let log = Arc::new(Log::new(broken));
        let spawn = |item| {
            let log = Arc::clone(&log);
            thread::spawn(move || log.publish(item))
        };
        let threads = [0, 1].map(spawn);
        log.read(0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_items_share_a_place() {
    loom::model(|| {
        let log = Log::new(Broken::Nothing);
        log.published.note(key(0), 7);
        assert_eq!(log.published.position(key(1)), 7);
    });
}

#[test]
fn waiter_is_notified_when_word_is_durable() {
    model(Broken::Nothing);
}

#[test]
#[should_panic(expected = "told too early")]
fn place_set_after_word_is_caught() {
    model(Broken::NotedLate);
}

#[test]
#[should_panic(expected = "told too early")]
fn word_without_order_is_caught() {
    model(Broken::StoredRelaxed);
}

#[test]
#[should_panic(expected = "told too early")]
fn place_before_entrys_end_is_caught() {
    model(Broken::NotedShort);
}

#[test]
#[should_panic(expected = "never told")]
fn sync_outside_lock_is_caught() {
    model(Broken::SyncedBesideLock);
}
