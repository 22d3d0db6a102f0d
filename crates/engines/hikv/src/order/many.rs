//! What batches changed, beside a queue: a batch takes one place of the queue, however many changes it has. So that
//! place in the queue's order is the place of all changes, and a writer that holds its keys' locks needs no more than
//! that.
//!
//! 1 the ticket is taken; 2 the changes are put here; 3 its place is filled with [`super::change::Change::MANY`]; 4 the
//! drainer takes a group after the other; 5 after the last one the queue moves on. Nobody meets 3 without 2.

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
    /// How many changes wait.
    pub(super) fn len(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Step 2.
    pub(super) fn put(&self, ticket: u64, changes: VecDeque<Change>) {
        self.count.fetch_add(changes.len() as u64, Ordering::AcqRel);
        self.by_ticket.lock().insert(ticket, changes);
    }

    /// The next changes of the ticket's batch. The caller is the drainer.
    pub(super) fn next(&self, ticket: u64) -> Group {
        let by_ticket = self.by_ticket.lock();
        by_ticket.get(&ticket).into_iter().flatten().take(GROUP_COUNT).copied().collect()
    }

    /// The next `count` of them were applied; true if these were the last. The caller is the drainer.
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
