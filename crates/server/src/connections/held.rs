//! Replies that wait until what they tell is durable.
//!
//! Requests are executed without waiting for the disk. What came of them is written to the output at once and held there, behind a
//! ticket; later replies of the connection queue behind it. So a connection's replies keep their order, one sync serves all
//! connections that wait, and the output's bound is the bound of what is held.
//!
//! If the store cannot make something durable any more, the connections that wait for that are closed: what a crash would leave
//! of their requests is unknown. From then on writes are refused with an error, and reads are answered.

use std::collections::VecDeque;

use hikv::{Error, Store, Ticket};

/// The parts of an output that are held.
#[derive(Default)]
pub(crate) struct Held {
    parts: VecDeque<Part>,
    /// For all of them, and perhaps for some that were let go.
    all: Ticket,
}

/// From `start` to the next part's start, or to the end.
struct Part {
    start: usize,
    ticket: Ticket,
}

impl Held {
    /// What lies from `start` on, and behind all parts so far, waits for `ticket`.
    pub(crate) fn add(&mut self, start: usize, ticket: Ticket) {
        self.all = self.all.merge(ticket);
        match self.parts.back_mut() {
            Some(last) if last.ticket == ticket || last.start == start => last.ticket = last.ticket.merge(ticket),
            _ => self.parts.push_back(Part { start, ticket }),
        }
    }

    /// What has to be durable until nothing is held.
    pub(crate) fn ticket(&self) -> Ticket {
        self.all
    }

    /// Where the first part begins.
    #[inline]
    pub(crate) fn start(&self) -> Option<usize> {
        self.parts.front().map(|part| part.start)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Lets go what is durable, and says whether that was anything.
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

    /// So many bytes were taken away before all parts.
    pub(crate) fn move_down(&mut self, len_bytes: usize) {
        self.parts.iter_mut().for_each(|part| part.start -= len_bytes);
    }
}

/// The connections of one loop that hold replies, and what they wait for.
pub(crate) struct Holders {
    waker: hikv::Waker,
    keys: Vec<usize>,
    /// What was not asked for yet.
    owed: Ticket,
}

impl Holders {
    /// `wake` has the loop call [`Holders::release`].
    pub(crate) fn new(store: &Store, wake: impl Fn() + Send + Sync + 'static) -> Holders {
        Holders { waker: store.waker(wake), keys: Vec::new(), owed: Ticket::default() }
    }

    /// Whether nobody holds replies.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Replies are held behind `ticket`, for which the loop asks before it sleeps.
    pub(crate) fn owe(&mut self, ticket: Ticket) {
        self.owed = self.owed.merge(ticket);
    }

    /// Connection number `key` begins to hold replies, whose ticket is owed.
    pub(crate) fn add(&mut self, key: usize) {
        self.keys.push(key);
    }

    /// Asks for what is owed, and says whether it is durable already, or never will be.
    pub(crate) fn ask(&mut self) -> bool {
        let owed = std::mem::take(&mut self.owed);
        owed != Ticket::default() && self.waker.request(owed).unwrap_or(true)
    }

    /// Has `release` look at each connection, and say whether it goes on waiting.
    pub(crate) fn release(&mut self, mut release: impl FnMut(usize) -> bool) {
        self.keys.retain(|key| release(*key));
    }
}
