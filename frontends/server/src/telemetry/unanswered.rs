//! Batches of requests whose replies are held until they are durable: their latencies end at that time.

use std::collections::VecDeque;
use std::time::Instant;

use hikv::{Store, Ticket};

use super::counters::{BatchCounts, Counters};

/// Those of one connection, oldest first.
#[derive(Default)]
pub(crate) struct Unanswered(VecDeque<Batch>);

struct Batch {
    ticket: Ticket,
    woke: Instant,
    counts: BatchCounts,
}

impl Unanswered {
    /// Adds a batch that was reported when the loop `woke` and waits for `ticket`.
    pub(crate) fn add(&mut self, ticket: Ticket, woke: Instant, counts: BatchCounts) {
        self.0.push_back(Batch { ticket, woke, counts });
    }

    /// Counts the batches that are durable now. Batches that never become durable are dropped with their connection,
    /// uncounted.
    pub(crate) fn release(&mut self, store: &Store, counters: &Counters) {
        let now = Instant::now();
        while let Some(batch) = self.0.front()
            && store.is_durable(batch.ticket).unwrap_or(false)
        {
            counters.note_answered(&batch.counts, now - batch.woke);
            self.0.pop_front();
        }
    }
}
