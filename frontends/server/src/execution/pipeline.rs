//! The requests that one connection sent together.
//!
//! They are executed in order (`turn`). Execution stops when the output is full; the remaining requests stay here until
//! the output has been sent.

use std::mem;
use std::time::Duration;

use resp::{Parser, ProtocolError, Request, Requests};

use crate::connections::buffers::{Buffers, KEPT_BYTES_MAX};

/// Maximum number of requests parsed at a time: several groups of reads, and little to hold for a client that does not
/// read its replies.
const REQUEST_COUNT_MAX: usize = 128;

/// The position of the next request to execute.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) request: usize,
    /// For a read: how many keys of the request have been answered.
    pub(crate) key: usize,
}

/// The progress of a pipeline's execution.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) cursor: Cursor,
    /// Time spent on the already answered keys of the read at the cursor.
    pub(super) spent: Duration,
}

impl Progress {
    /// Returns whether the output ends inside a reply: an array with more values to follow.
    pub(super) fn is_within_reply(&self) -> bool {
        self.cursor.key > 0
    }
}

#[derive(Default)]
pub(crate) struct Pipeline {
    pub(super) requests: Requests,
    pub(super) progress: Progress,
    /// A protocol error after the parsed requests.
    pub(super) protocol_error: Option<ProtocolError>,
    parsed_bytes: usize,
}

impl Pipeline {
    /// Borrows the loop's request list for a turn, unless requests are pending.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.requests.is_empty() {
            self.requests = mem::take(&mut buffers.requests);
        }
    }

    /// Returns the loop's request list after a turn, unless requests are pending.
    pub(crate) fn return_buffer(&mut self, buffers: &mut Buffers) {
        if self.is_done() {
            let mut requests = mem::take(&mut self.requests);
            requests.clear();
            self.progress.cursor = Cursor::default();
            if requests.capacity_bytes() <= KEPT_BYTES_MAX {
                buffers.requests = requests;
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.progress.cursor.request == self.requests.len() && self.protocol_error.is_none()
    }

    /// Moves the cursor back to request `number`.
    pub(crate) fn return_to(&mut self, number: usize) {
        self.progress.cursor = Cursor { request: number, key: 0 };
    }

    /// Returns whether the output ends inside a reply: an array with more values to follow.
    pub(crate) fn is_within_reply(&self) -> bool {
        self.progress.is_within_reply()
    }

    /// Removes the finished requests and returns their length in the input.
    pub(crate) fn restart(&mut self) -> usize {
        self.requests.clear();
        self.progress.cursor = Cursor::default();
        mem::take(&mut self.parsed_bytes)
    }

    /// Parses the next requests in `input`. A client that is not logged in may log in with the first of them, and is
    /// held to stricter limits until then.
    pub(crate) fn parse(&mut self, parser: &mut Parser, input: &[u8], is_unauthenticated: bool) {
        let count_max = if is_unauthenticated { 1 } else { REQUEST_COUNT_MAX };
        match parser.parse(input, &mut self.requests, count_max) {
            Ok(parsed_bytes) => self.parsed_bytes = parsed_bytes,
            Err(protocol_error) => self.protocol_error = Some(protocol_error),
        }
    }

    /// Returns request number `number`; `input` is the input it was parsed from.
    pub(crate) fn request<'a>(&'a self, number: usize, input: &'a [u8]) -> Request<'a> {
        self.requests.get(number, input)
    }
}
