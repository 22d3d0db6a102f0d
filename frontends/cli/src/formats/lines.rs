//! Reads numbered lines; skips a byte-order mark before the first.

use std::io::{self, BufRead, ErrorKind, Read};

use hikv::Limits;
use server::without_mark;

use super::Format;

/// The part of a long line that is read before its length is checked again.
const PIECE_BYTES: u64 = 1 << 20;

/// The maximum length of a line that is an item. Without it, input without line ends would fill the memory.
#[derive(Clone, Copy)]
struct Bound {
    /// Bytes of a line without escapes.
    plain_bytes_max: u64,
    /// The byte that begins an escape, and the most bytes that an escape adds to the byte that it represents.
    escape: (u8, u64),
}

impl Bound {
    /// The maximum length of a key plus a value; a line has little else.
    const ITEM_BYTES_MAX: u64 = Limits::KEY_BYTES_MAX as u64 + Limits::VALUE_BYTES_MAX;
    const AROUND_BYTES: u64 = 1024;

    fn of(format: Format) -> Bound {
        let (plain_bytes_max, escape) = match format {
            // \xHH
            Format::Tsv => (Bound::ITEM_BYTES_MAX, (b'\\', 3)),
            // A doubled quote.
            Format::Csv => (Bound::ITEM_BYTES_MAX, (b'"', 1)),
            // \u00HH; base64 has four characters for three bytes.
            Format::Jsonl => (Bound::ITEM_BYTES_MAX / 3 * 4, (b'\\', 5)),
        };
        Bound { plain_bytes_max: plain_bytes_max + Bound::AROUND_BYTES, escape }
    }

    /// Returns the most bytes that the escapes in `piece` add to a line.
    fn escaped_bytes(self, piece: &[u8]) -> u64 {
        let (escape, more_bytes) = self.escape;
        piece.iter().filter(|&&byte| byte == escape).count() as u64 * more_bytes
    }
}

/// Reads an input line by line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    bound: Bound,
    number: u64,
    done_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, format: Format) -> Lines<R> {
        Lines::up_to(Bound::of(format), input)
    }

    fn up_to(bound: Bound, input: R) -> Lines<R> {
        Lines { input, line: Vec::new(), bound, number: 0, done_bytes: 0 }
    }

    /// Reads the next line; returns false at the end of the input.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        let piece_bytes = PIECE_BYTES.min(self.bound.plain_bytes_max);
        let mut len_bytes_max = self.bound.plain_bytes_max;
        loop {
            let before = self.line.len();
            let read_bytes = (&mut self.input).take(piece_bytes).read_until(b'\n', &mut self.line)?;
            self.done_bytes += read_bytes as u64;
            if (read_bytes as u64) < piece_bytes || self.line.ends_with(b"\n") {
                break;
            }
            len_bytes_max += self.bound.escaped_bytes(&self.line[before..]);
            if self.line.len() as u64 > len_bytes_max {
                let what = format!("line {} is longer than any item", self.number + 1);
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        }
        if self.line.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        if self.number == 1 {
            let mark_bytes = self.line.len() - without_mark(&self.line)?.len();
            self.line.drain(..mark_bytes);
        }
        Ok(true)
    }

    /// Returns the line with its line end.
    pub(super) fn whole(&self) -> &[u8] {
        &self.line
    }

    /// Returns the line without LF or CR LF.
    pub(super) fn content(&self) -> &[u8] {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Returns true if the line has a line end; the last line of an input may have none.
    pub(super) fn is_ended(&self) -> bool {
        self.line.ends_with(b"\n")
    }

    /// Returns the number of the line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the length of this line and all lines before it.
    pub(super) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bound = Bound { plain_bytes_max: 5, escape: (b'\\', 3) };

    #[test]
    fn endless_lines_are_named() {
        let mut lines = Lines::up_to(SMALL, &b"abc\nabcdefghijk"[..]);
        assert!(lines.advance().expect("a line") && lines.content() == b"abc");
        assert_eq!(lines.advance().expect_err("it is too long").to_string(), "line 2 is longer than any item");
        let bound = Bound { plain_bytes_max: 1 << 20, ..SMALL };
        let mut endless = Lines::up_to(bound, io::BufReader::new(io::repeat(0)));
        assert!(endless.advance().is_err());
        assert!(endless.line.len() as u64 <= 2 * PIECE_BYTES, "{}", endless.line.len());
    }

    #[test]
    fn escapes_make_lines_longer() {
        let mut lines = Lines::up_to(SMALL, &b"\\x00\\x00\\x00\n12345\n123456\n1234567890\n"[..]);
        for line in [&b"\\x00\\x00\\x00"[..], b"12345", b"123456"] {
            assert!(lines.advance().expect("it may be an item") && lines.content() == line, "{line:?}");
        }
        assert!(lines.advance().is_err());
    }

    #[test]
    fn byte_order_marks_are_skipped_once() {
        let mut lines = Lines::new(&b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"[..], Format::Tsv);
        assert!(lines.advance().unwrap() && lines.content() == b"a");
        assert!(lines.advance().unwrap() && lines.content() == b"\xef\xbb\xbfb");
        assert_eq!(lines.done_bytes(), 10);
        let mut alone = Lines::new(&b"\xef\xbb\xbf"[..], Format::Csv);
        assert!(alone.advance().unwrap() && alone.content().is_empty() && !alone.advance().unwrap());
        let error = Lines::new(&b"\xff\xfea\0\n\0"[..], Format::Jsonl).advance().unwrap_err();
        assert!(error.to_string().contains("UTF-16"), "{error}");
    }
}
