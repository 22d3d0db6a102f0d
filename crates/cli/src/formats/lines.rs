//! Numbered lines.

use std::io::{self, BufRead};

/// Walks an input line by line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    done_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines { input, line: Vec::new(), number: 0, done_bytes: 0 }
    }

    /// Goes to the next line; false at the end of the input.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        let len_bytes = self.input.read_until(b'\n', &mut self.line)?;
        self.number += u64::from(len_bytes > 0);
        self.done_bytes += len_bytes as u64;
        Ok(len_bytes > 0)
    }

    /// The line with what ends it.
    pub(super) fn whole(&self) -> &[u8] {
        &self.line
    }

    /// The line without LF or CR LF.
    pub(super) fn content(&self) -> &[u8] {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Of the line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Of this line and those before it.
    pub(super) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }
}
