//! Keeps the deletion of dead elements as fast as their production, as `engine::pace` does for expired keys.
//!
//! The thread that deletes them (`reclaimer`) is *behind* if more elements are dead than [`Pace::allow`] permits, if it
//! found so many expired collections at once that it could not read all, or if more emptied databases wait than there
//! are databases. While it is behind, each command that writes does steps of that thread for as long as the command
//! itself took.
//!
//! # Bound
//! A thread deletes elements faster than threads together can write them while each of these waits for it as often as
//! it writes: steps are done one at a time. So the dead elements of deleted collections become fewer while they are
//! more than is allowed, at any rate of writes. A long-lived collection that is deleted is half of the store before it
//! slows any writer. The records of an emptied database are not counted: one `FLUSHALL` slows no writer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hikv::Item;
use parking_lot::{Mutex, MutexGuard};

use crate::keyspace::namespace::DATABASE_COUNT;

/// Dead elements that slow no writer, in a store of any size.
const FREE_COUNT: u64 = 1 << 15;

/// What is dead, as far as it is known. All counts are relaxed: they only decide who works when.
pub(crate) struct Pace {
    /// Elements of deleted collections. Those of expired ones, and those from before the start, are not among them.
    dead_count: AtomicU64,
    allowed_count: AtomicU64,
    /// Emptied databases whose records are not deleted yet.
    flushed_count: AtomicU64,
    /// Rows of collections whose time has come.
    due: Mutex<VecDeque<Item>>,
    /// There are more of them than were read.
    is_more_due: AtomicBool,
    turn: Mutex<()>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            dead_count: AtomicU64::new(0),
            allowed_count: AtomicU64::new(FREE_COUNT),
            flushed_count: AtomicU64::new(0),
            due: Mutex::default(),
            is_more_due: AtomicBool::new(false),
            turn: Mutex::default(),
        }
    }
}

impl Pace {
    /// Counts elements that a command has made dead.
    pub(crate) fn note_dead(&self, count: u64) {
        self.dead_count.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts deleted elements.
    pub(crate) fn note_deleted(&self, count: u64) {
        reduce(&self.dead_count, count);
    }

    /// Counts an emptied database.
    pub(crate) fn note_flushed(&self) {
        self.flushed_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that an emptied database has no records left.
    pub(crate) fn note_flushed_done(&self) {
        reduce(&self.flushed_count, 1);
    }

    /// Notes that nothing is dead. A transaction that was refused may have counted too many.
    pub(crate) fn note_none(&self) {
        self.dead_count.store(0, Ordering::Relaxed);
        self.flushed_count.store(0, Ordering::Relaxed);
    }

    /// Allows half of a store of this many items to be dead.
    pub(crate) fn allow(&self, item_count: u64) {
        self.allowed_count.store(FREE_COUNT.max(item_count / 2), Ordering::Relaxed);
    }

    /// Returns whether commands that write have to help.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.dead_count.load(Ordering::Relaxed) > self.allowed_count.load(Ordering::Relaxed)
            || self.is_more_due.load(Ordering::Relaxed)
            || self.flushed_count.load(Ordering::Relaxed) > DATABASE_COUNT as u64
    }

    /// Waits until no other thread does a step. The caller holds no lock of a key.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Replaces the rows of collections whose time has come.
    pub(crate) fn set_due(&self, rows: Vec<Item>, is_more: bool) {
        *self.due.lock() = rows.into();
        self.is_more_due.store(is_more, Ordering::Relaxed);
    }

    /// Takes some of these rows.
    pub(crate) fn take_due(&self, count: usize) -> Vec<Item> {
        let mut due = self.due.lock();
        let count = count.min(due.len());
        let taken = due.drain(..count).collect();
        if due.is_empty() {
            self.is_more_due.store(false, Ordering::Relaxed);
        }
        taken
    }

    /// Puts one of them back.
    pub(crate) fn put_back(&self, row: Item) {
        self.due.lock().push_front(row);
    }
}

fn reduce(count: &AtomicU64, by: u64) {
    let less = |count: u64| Some(count.saturating_sub(by));
    let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_store_may_be_half_dead() {
        let pace = Pace::default();
        pace.note_dead(FREE_COUNT);
        assert!(!pace.is_behind());
        pace.note_dead(1);
        assert!(pace.is_behind());
        pace.allow(4 * FREE_COUNT);
        assert!(!pace.is_behind());
        pace.note_dead(FREE_COUNT);
        assert!(pace.is_behind());
        pace.note_deleted(1);
        assert!(!pace.is_behind());
        pace.note_deleted(u64::MAX);
        pace.note_dead(FREE_COUNT + 1);
        pace.allow(0);
        assert!(pace.is_behind(), "the count never falls below 0");
        pace.note_none();
        assert!(!pace.is_behind());
    }

    #[test]
    fn surplus_flushed_databases_slow_writers() {
        let pace = Pace::default();
        (0..DATABASE_COUNT).for_each(|_| pace.note_flushed());
        assert!(!pace.is_behind());
        pace.note_flushed();
        assert!(pace.is_behind());
        pace.note_flushed_done();
        assert!(!pace.is_behind());
    }

    #[test]
    fn writers_help_until_read_rows_are_deleted() {
        let (pace, row) = (Pace::default(), (vec![1], vec![2]));
        pace.set_due(vec![row.clone(); 3], true);
        assert!(pace.is_behind());
        assert_eq!(pace.take_due(2).len(), 2);
        assert!(pace.is_behind());
        assert_eq!(pace.take_due(2), std::slice::from_ref(&row));
        assert!(!pace.is_behind() && pace.take_due(1).is_empty());
        pace.set_due(vec![row], false);
        assert!(!pace.is_behind());
        pace.put_back((vec![0], vec![]));
        assert_eq!(pace.take_due(1), [(vec![0], vec![])]);
    }
}
