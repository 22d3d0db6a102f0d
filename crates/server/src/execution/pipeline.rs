//! The requests that one connection sent together.
//!
//! They are executed in order (`turn`), and stop at the first that fills the output; the rest waits here until that is sent.

use std::mem;
use std::time::Duration;

use resp::{Parser, ProtocolError, Request, Requests};

use crate::connections::buffers::{Buffers, KEPT_BYTES_MAX};

/// Requests parsed at a time: several groups of reads, and little to hold for a client that does not read its replies.
const REQUEST_COUNT_MAX: usize = 128;

/// The next thing to execute.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) request: usize,
    /// Keys of that request that have been answered, if it is a read.
    pub(crate) key: usize,
}

#[derive(Default)]
pub(crate) struct Pipeline {
    pub(super) requests: Requests,
    pub(super) cursor: Cursor,
    /// What follows the requests and cannot be parsed.
    pub(super) breach: Option<ProtocolError>,
    /// What the keys of the read at the cursor that are answered have taken.
    pub(super) spent: Duration,
    parsed_bytes: usize,
}

impl Pipeline {
    /// Takes the loop's list of requests for a turn, if it has none that wait.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.requests.is_empty() {
            self.requests = mem::take(&mut buffers.requests);
        }
    }

    /// Gives the loop's list back after a turn if nothing waits.
    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        if self.is_done() {
            let mut requests = mem::take(&mut self.requests);
            requests.clear();
            self.cursor = Cursor::default();
            if requests.capacity_bytes() <= KEPT_BYTES_MAX {
                buffers.requests = requests;
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.cursor.request == self.requests.len() && self.breach.is_none()
    }

    /// Makes request number `number` the next one again.
    pub(crate) fn return_to(&mut self, number: usize) {
        self.cursor = Cursor { request: number, key: 0 };
    }

    /// Whether the output ends within a reply: an array of values, of which the others follow.
    pub(crate) fn is_within_reply(&self) -> bool {
        self.cursor.key > 0
    }

    /// Forgets the requests that are done and returns how many bytes of input they were.
    pub(crate) fn restart(&mut self) -> usize {
        self.requests.clear();
        self.cursor = Cursor::default();
        mem::take(&mut self.parsed_bytes)
    }

    /// Finds the next requests in `input`. A client without a user may get one by the first of them, and is held to other limits
    /// until then.
    pub(crate) fn parse(&mut self, parser: &mut Parser, input: &[u8], is_stranger: bool) {
        let count_max = if is_stranger { 1 } else { REQUEST_COUNT_MAX };
        match parser.parse(input, &mut self.requests, count_max) {
            Ok(parsed_bytes) => self.parsed_bytes = parsed_bytes,
            Err(breach) => self.breach = Some(breach),
        }
    }

    /// Request number `number`; `input` is what it was parsed from.
    pub(crate) fn request<'a>(&'a self, number: usize, input: &'a [u8]) -> Request<'a> {
        self.requests.get(number, input)
    }
}
