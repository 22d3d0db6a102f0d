//! What has arrived on a connection and was not read: at most one PDU that is not whole, and what came with it.

use std::io::{self, ErrorKind, Read};

/// Room for reading beside a PDU that is not whole.
const READ_BYTES: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Input {
    /// As long as its room; allocated when something is read first.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// What came of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// There may be more.
    Some,
    /// It was less than there was room for.
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

    /// Reads once. There is room for a whole PDU, since less than one was left.
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
