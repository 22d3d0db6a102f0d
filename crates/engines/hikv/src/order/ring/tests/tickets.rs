//! The time at which tickets are taken: one key, its entry under a bucket's lock, two writers, and a reader that then
//! scans.

use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicU64;
use loom::sync::{Arc, Mutex};
use loom::thread;
use word::model::Modelled;

use super::super::{CHANGE_WORDS, Ring};

const WRITER_COUNT: u64 = 2;

struct Key {
    bucket: Mutex<()>,
    /// The result of a get: the number of the last writer.
    entry: AtomicU64,
    ring: Ring<Modelled>,
}

impl Key {
    /// A write as the engine does it, or the broken variant that takes its ticket once the entry is visible.
    fn write(&self, new: u64, is_ticket_late: bool) {
        let take = || self.ring.take().expect("there is a place for all");
        let bucket = self.bucket.lock().unwrap();
        let ticket = (!is_ticket_late).then(take);
        let old = self.entry.load(Ordering::Relaxed);
        self.entry.store(new, Ordering::Release);
        drop(bucket);
        let ticket = ticket.unwrap_or_else(take);
        ticket.fill([new, old, 0, 0, 0, 0, 0]);
    }

    /// The change that was read is among the tickets that a scan waits for.
    fn read_and_scan(&self) {
        let is_written = self.entry.load(Ordering::Acquire) != 0;
        assert!(!is_written || self.ring.tail() > 0, "a scan misses what a get has seen");
    }

    /// The ordered index reaches the state of the hash index, step by step.
    fn apply_all(&self) {
        let mut changes = [[0; CHANGE_WORDS]; WRITER_COUNT as usize];
        assert_eq!(self.ring.peek(&mut changes), changes.len());
        let applied = changes.iter().fold(0, |now, change| {
            assert_eq!(change[1], now, "a key's changes are applied in another order");
            change[0]
        });
        assert_eq!(applied, self.entry.load(Ordering::Relaxed));
    }
}

/// Two writers, and a reader during their writes and after them.
fn model(is_ticket_late: bool, meanwhile: fn(&Key), afterwards: fn(&Key)) {
    loom::model(move || {
        let key = Key { bucket: Mutex::new(()), entry: AtomicU64::new(0), ring: Ring::new(WRITER_COUNT as usize) };
        let key = Arc::new(key);
        let spawn = |number| {
            let key = Arc::clone(&key);
            thread::spawn(move || match number {
                1..=WRITER_COUNT => key.write(number, is_ticket_late),
                _ => meanwhile(&key),
            })
        };
        let threads: Vec<_> = (1..=WRITER_COUNT + 1).map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        afterwards(&key);
    });
}

#[test]
fn keys_changes_are_ordered_and_scans_complete() {
    model(false, Key::read_and_scan, Key::apply_all);
}

#[test]
#[should_panic(expected = "a key's changes are applied in another order")]
fn ticket_after_entry_swaps_two_writers() {
    model(true, |_| (), Key::apply_all);
}

#[test]
#[should_panic(expected = "a scan misses what a get has seen")]
fn ticket_after_entry_is_missed_by_scan() {
    model(true, Key::read_and_scan, |_| ());
}
