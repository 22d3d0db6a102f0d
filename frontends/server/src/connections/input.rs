//! Bytes read from a connection and not yet parsed.

use std::io;
use std::mem;

use crate::connections::buffers::Buffers;
use crate::connections::transport::{Arrived, Transport};

/// Maximum bytes per read: as many as a socket delivers at a time on a busy server, and a limit on one connection's
/// turn.
const READ_BYTES: usize = 64 << 10;

/// The longest partial request that is copied out of the borrowed buffer and kept until the remainder arrives.
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
    /// Borrows the loop's buffer for a turn, unless a long request is arriving in the connection's own buffer.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.bytes.capacity() <= MOVED_BYTES_MAX {
            let mut buffer = mem::take(&mut buffers.input);
            buffer.extend_from_slice(self.pending());
            (self.bytes, self.start) = (buffer, 0);
        }
    }

    /// Returns the loop's buffer after a turn, and keeps the remaining bytes in the connection's own buffer.
    pub(crate) fn return_buffer(&mut self, buffers: &mut Buffers) {
        if self.pending().len() <= MOVED_BYTES_MAX {
            let rest = self.pending().to_vec();
            buffers.keep_input(mem::replace(&mut self.bytes, rest));
            self.start = 0;
        }
    }

    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the bytes read since the last call.
    pub(crate) fn take_count(&mut self) -> u64 {
        mem::take(&mut self.read_bytes)
    }

    /// Returns the unused capacity of the buffer.
    pub(crate) fn unused_bytes(&self) -> usize {
        self.bytes.capacity() - self.pending().len()
    }

    pub(crate) fn consume(&mut self, len_bytes: usize) {
        self.start += len_bytes;
    }

    /// Frees an own buffer that is larger than its contents.
    pub(crate) fn shrink(&mut self) {
        if self.pending().len() <= MOVED_BYTES_MAX {
            (self.bytes, self.start) = (self.pending().to_vec(), 0);
        }
    }

    /// Reads once. `wanted_bytes` is the length that would complete the request, or 0. The buffer grows with the bytes
    /// that have arrived and not with the announced length, at most to twice their size; for a long argument it grows
    /// exactly to the argument's end.
    pub(crate) fn read(&mut self, transport: &mut Transport, wanted_bytes: usize) -> io::Result<Arrived> {
        self.bytes.drain(..mem::take(&mut self.start));
        let len_bytes = self.bytes.len();
        let missing_bytes = wanted_bytes.saturating_sub(len_bytes);
        if missing_bytes == 0 || len_bytes < READ_BYTES {
            self.bytes.reserve(READ_BYTES);
        } else if self.bytes.capacity() == len_bytes {
            self.bytes.reserve_exact(missing_bytes.min(len_bytes));
        }
        let arrived = transport.read(&mut self.bytes)?;
        self.read_bytes += (self.bytes.len() - len_bytes) as u64;
        Ok(arrived)
    }
}
