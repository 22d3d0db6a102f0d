//! A connection's unread input: at most one incomplete PDU, and the data that arrived with it.

use std::io::{self, ErrorKind, Read};

/// Space for reading, in addition to an incomplete PDU.
const READ_BYTES: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Input {
    /// As long as its capacity; allocated by the first read.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The outcome of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// There may be more.
    Some,
    /// Less than the free space was read.
    Rest,
    /// There is no more for now.
    All,
    /// The peer has closed.
    End,
}

impl Input {
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, len_bytes: usize) {
        self.start += len_bytes;
    }

    /// Reads once. A complete PDU fits, because less than one was left.
    pub(crate) fn fill(&mut self, source: &mut impl Read, pdu_bytes_max: usize) -> io::Result<Filled> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.bytes.is_empty() {
            self.bytes = vec![0; pdu_bytes_max + READ_BYTES];
        }
        if self.end == self.bytes.len() {
            return Ok(Filled::Some);
        }
        loop {
            return match source.read(&mut self.bytes[self.end..]) {
                Ok(0) => Ok(Filled::End),
                Ok(len_bytes) => {
                    self.end += len_bytes;
                    Ok(if self.end < self.bytes.len() { Filled::Rest } else { Filled::Some })
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Filled::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }
}
