//! Replies that wait until the changes they report are durable.
//!
//! Requests are executed without waiting for the disk. Their replies are written to the output immediately and held
//! there behind a ticket; later replies of the connection queue behind them. So a connection's replies keep their
//! order, one sync serves all waiting connections, and the output's limit also limits held replies.
//!
//! If the store can no longer make data durable, the connections that wait for durability are closed, because nothing
//! is known about how many requests would survive a crash. From then on writes are refused with an error, and reads are
//! answered.

use std::collections::VecDeque;

use hikv::{Error, Store, Ticket};

/// The held parts of an output.
#[derive(Default)]
pub(crate) struct Held {
    parts: VecDeque<Part>,
    /// Covers all of them, and possibly some that were already released.
    all: Ticket,
}

/// The bytes from `start` to the next part's start, or to the end.
struct Part {
    start: usize,
    ticket: Ticket,
}

impl Held {
    /// Holds the bytes from `start` on, after all present parts, until `ticket` is durable.
    pub(crate) fn add(&mut self, start: usize, ticket: Ticket) {
        self.all = self.all.merge(ticket);
        match self.parts.back_mut() {
            Some(last) if last.ticket == ticket || last.start == start => last.ticket = last.ticket.merge(ticket),
            _ => self.parts.push_back(Part { start, ticket }),
        }
    }

    /// Returns the ticket that must be durable before nothing is held.
    pub(crate) fn ticket(&self) -> Ticket {
        self.all
    }

    /// Returns where the first part begins.
    #[inline]
    pub(crate) fn start(&self) -> Option<usize> {
        self.parts.front().map(|part| part.start)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Releases the durable parts, and returns whether there were any.
    pub(crate) fn release(&mut self, store: &Store) -> Result<bool, Error> {
        let mut released = false;
        while let Some(part) = self.parts.front()
            && store.is_durable(part.ticket)?
        {
            self.parts.pop_front();
            released = true;
        }
        if self.parts.is_empty() {
            self.all = Ticket::default();
        }
        Ok(released)
    }

    /// Adjusts the parts after `len_bytes` were removed before all of them.
    pub(crate) fn move_down(&mut self, len_bytes: usize) {
        self.parts.iter_mut().for_each(|part| part.start -= len_bytes);
    }
}

/// The connections of one loop that hold replies, and the ticket they wait for.
pub(crate) struct Holders {
    waker: hikv::Waker,
    keys: Vec<usize>,
    /// The ticket that has not been requested from the store yet.
    owed: Ticket,
}

impl Holders {
    /// Creates the list. `wake` makes the loop call [`Holders::release`].
    pub(crate) fn new(store: &Store, wake: impl Fn() + Send + Sync + 'static) -> Holders {
        Holders { waker: store.waker(wake), keys: Vec::new(), owed: Ticket::default() }
    }

    /// Returns whether no connection holds replies.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Records that replies are held behind `ticket`, which the loop requests before it sleeps.
    pub(crate) fn defer(&mut self, ticket: Ticket) {
        self.owed = self.owed.merge(ticket);
    }

    /// Adds connection number `key`; its ticket is already recorded as owed.
    pub(crate) fn add(&mut self, key: usize) {
        self.keys.push(key);
    }

    /// Requests the owed ticket, and returns whether it is already durable, or never will be.
    pub(crate) fn request(&mut self) -> bool {
        let owed = std::mem::take(&mut self.owed);
        owed != Ticket::default() && self.waker.request(owed).unwrap_or(true)
    }

    /// Calls `release` for each connection, and keeps those for which it returns true.
    pub(crate) fn release(&mut self, mut release: impl FnMut(usize) -> bool) {
        self.keys.retain(|key| release(*key));
    }
}
