//! What has been read from a connection and not yet been understood.

use std::io;
use std::mem;

use crate::connections::buffers::Buffers;
use crate::connections::transport::{Arrived, Transport};

/// Room for one read: what a socket delivers at once to a busy server, and a bound on one connection's turn.
const READ_BYTES: usize = 64 << 10;

/// The longest part of a request that is moved out of the lent buffer, to be kept while the rest is on its way.
const MOVED_BYTES_MAX: usize = 8 << 10;

#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// The bytes before it have been consumed.
    start: usize,
    /// Bytes read since they were last counted.
    read_bytes: u64,
}

impl Input {
    /// Takes the loop's buffer for a turn, unless a long request is arriving in an own one.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.bytes.capacity() <= MOVED_BYTES_MAX {
            let mut lent = mem::take(&mut buffers.input);
            lent.extend_from_slice(self.pending());
            (self.bytes, self.start) = (lent, 0);
        }
    }

    /// Gives the loop's buffer back after a turn, and keeps what is left of an own one.
    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        if self.pending().len() <= MOVED_BYTES_MAX {
            let rest = self.pending().to_vec();
            buffers.keep_input(mem::replace(&mut self.bytes, rest));
            self.start = 0;
        }
    }

    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Bytes read since this was last called.
    pub(crate) fn take_count(&mut self) -> u64 {
        mem::take(&mut self.read_bytes)
    }

    /// Room that the own buffer, or the lent one, has beside what it holds.
    pub(crate) fn free_bytes(&self) -> usize {
        self.bytes.capacity() - self.pending().len()
    }

    pub(crate) fn consume(&mut self, len_bytes: usize) {
        self.start += len_bytes;
    }

    /// Gives up an own buffer that has become larger than what is left in it.
    pub(crate) fn shrink(&mut self) {
        if self.pending().len() <= MOVED_BYTES_MAX {
            (self.bytes, self.start) = (self.pending().to_vec(), 0);
        }
    }

    /// Reads once. `wanted_bytes` is the length that would complete the request, or 0.
    pub(crate) fn read(&mut self, transport: &mut Transport, wanted_bytes: usize) -> io::Result<Arrived> {
        self.make_space(wanted_bytes);
        let len_bytes = self.bytes.len();
        let arrived = transport.read(&mut self.bytes)?;
        self.read_bytes += (self.bytes.len() - len_bytes) as u64;
        Ok(arrived)
    }

    /// Makes room at the end. The buffer grows with what has arrived and not with what is announced, at most to twice
    /// of it, and for a long argument exactly to its end.
    fn make_space(&mut self, wanted_bytes: usize) {
        self.bytes.drain(..mem::take(&mut self.start));
        let len_bytes = self.bytes.len();
        let missing_bytes = wanted_bytes.saturating_sub(len_bytes);
        if missing_bytes == 0 || len_bytes < READ_BYTES {
            self.bytes.reserve(READ_BYTES);
        } else if self.bytes.capacity() == len_bytes {
            self.bytes.reserve_exact(missing_bytes.min(len_bytes));
        }
    }
}
