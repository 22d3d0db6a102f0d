//! The changes of batches, stored outside a queue: a batch takes one place of the queue for any number of changes. All
//! changes of the batch have that place in the queue's order, so a writer that holds the locks of all keys needs only
//! one ticket.
//!
//! 1. The ticket is taken.
//! 2. The changes are stored here.
//! 3. The place is filled with [`super::change::Change::MANY`].
//! 4. The drainer applies one group after the other.
//! 5. After the last group, the queue's head advances.
//!
//! No drainer meets 3 without 2.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::change::{Change, GROUP_COUNT, Group};

/// The changes of batches in one queue, by ticket.
#[derive(Debug, Default)]
pub(super) struct Many {
    by_ticket: Mutex<HashMap<u64, VecDeque<Change>>>,
    count: AtomicU64,
}

impl Many {
    /// Returns the number of waiting changes.
    pub(super) fn len(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Does step 2.
    pub(super) fn put(&self, ticket: u64, changes: VecDeque<Change>) {
        self.count.fetch_add(changes.len() as u64, Ordering::AcqRel);
        self.by_ticket.lock().insert(ticket, changes);
    }

    /// Returns the next changes of the ticket's batch. The caller is the drainer.
    pub(super) fn next(&self, ticket: u64) -> Group {
        let by_ticket = self.by_ticket.lock();
        by_ticket.get(&ticket).into_iter().flatten().take(GROUP_COUNT).copied().collect()
    }

    /// Removes the next `count` changes, which were applied; returns true if they were the last. The caller is the
    /// drainer.
    pub(super) fn advance(&self, ticket: u64, count: usize) -> bool {
        let mut by_ticket = self.by_ticket.lock();
        let is_last = by_ticket.get_mut(&ticket).is_none_or(|changes| {
            changes.drain(..count);
            changes.is_empty()
        });
        if is_last {
            by_ticket.remove(&ticket);
        }
        self.count.fetch_sub(count as u64, Ordering::AcqRel);
        is_last
    }
}
