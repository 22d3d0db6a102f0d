//! Numbered lines.

use std::io::{self, BufRead, ErrorKind, Read};

use hikv::Limits;

/// No line of an item is longer: each byte of key and value takes six at most (`\u00ff`), and what is around them little. What has
/// no line ends would otherwise be read until there is no memory left.
const LINE_BYTES_MAX: u64 = 6 * (Limits::KEY_BYTES_MAX as u64 + Limits::VALUE_BYTES_MAX) + 1024;

/// Walks an input line by line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    line_bytes_max: u64,
    number: u64,
    done_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines::up_to(LINE_BYTES_MAX, input)
    }

    fn up_to(line_bytes_max: u64, input: R) -> Lines<R> {
        Lines { input, line: Vec::new(), line_bytes_max, number: 0, done_bytes: 0 }
    }

    /// Goes to the next line; false at the end of the input.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        let len_bytes = (&mut self.input).take(self.line_bytes_max).read_until(b'\n', &mut self.line)?;
        self.number += u64::from(len_bytes > 0);
        if len_bytes as u64 == self.line_bytes_max {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("line {} is too long", self.number)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_an_error() {
        let mut lines = Lines::up_to(5, &b"abc\nabcdefgh"[..]);
        assert!(lines.advance().expect("a line") && lines.content() == b"abc");
        assert_eq!(lines.advance().expect_err("it is too long").to_string(), "line 2 is too long");
        let mut endless = Lines::up_to(1 << 20, io::BufReader::new(io::repeat(0)));
        assert!(endless.advance().is_err());
    }
}
