//! Reads numbered lines; skips a byte-order mark before the first.

use std::io::{self, BufRead, Read};
use std::mem;

use hikv::Limits;
use server::without_mark;

use super::{Format, ReadError};

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
        count_of(escape, piece) as u64 * more_bytes
    }

    /// Returns true if `piece` ends within quotes exactly if it does not begin within them.
    fn toggles_quoting(self, piece: &[u8]) -> bool {
        self.escape.0 == b'"' && !count_of(b'"', piece).is_multiple_of(2)
    }
}

fn count_of(wanted: u8, bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == wanted).count()
}

/// Reads an input line by line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    bound: Bound,
    number: u64,
    done_bytes: u64,
    /// The rest of the current item is still to be skipped, because the item is too long.
    is_too_long: bool,
    /// The input continues within quotes, where a line end ends no item.
    is_quoted: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, format: Format) -> Lines<R> {
        Lines::up_to(Bound::of(format), input)
    }

    fn up_to(bound: Bound, input: R) -> Lines<R> {
        Lines { input, line: Vec::new(), bound, number: 0, done_bytes: 0, is_too_long: false, is_quoted: false }
    }

    /// Reads the next line; returns false at the end of the input.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] for a line that is longer than any item; the next line is then that of another item.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        if mem::take(&mut self.is_too_long) {
            self.skip().map_err(ReadError::Input)?;
        }
        self.line.clear();
        let piece_bytes = PIECE_BYTES.min(self.bound.plain_bytes_max);
        let mut len_bytes_max = self.bound.plain_bytes_max;
        loop {
            let before = self.line.len();
            let read_bytes =
                (&mut self.input).take(piece_bytes).read_until(b'\n', &mut self.line).map_err(ReadError::Input)?;
            self.done_bytes += read_bytes as u64;
            if (read_bytes as u64) < piece_bytes || self.line.ends_with(b"\n") {
                break;
            }
            len_bytes_max += self.bound.escaped_bytes(&self.line[before..]);
            if self.line.len() as u64 > len_bytes_max {
                self.number += 1;
                self.is_too_long = true;
                self.is_quoted ^= self.bound.toggles_quoting(&mem::take(&mut self.line));
                let what = "the line is longer than any item".to_owned();
                return Err(ReadError::Malformed { line: self.number, what });
            }
        }
        if self.line.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        if self.number == 1 {
            let mark_bytes = self.line.len() - without_mark(&self.line).map_err(ReadError::Input)?.len();
            self.line.drain(..mark_bytes);
        }
        Ok(true)
    }

    /// Reads the next line, which begins within quotes.
    ///
    /// # Errors
    /// As `advance`.
    pub(super) fn advance_quoted(&mut self) -> Result<bool, ReadError> {
        self.is_quoted = true;
        let advanced = self.advance();
        self.is_quoted &= self.is_too_long;
        advanced
    }

    /// Skips the rest of an item, which is too long and continues within quotes after the current line.
    pub(super) fn skip_quoted(&mut self) {
        (self.is_too_long, self.is_quoted) = (true, true);
        self.number += 1;
    }

    /// Reads over the rest of an item without keeping it.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let line_end = buffer.iter().position(|&byte| byte == b'\n');
            let piece = &buffer[..line_end.map_or(buffer.len(), |at| at + 1)];
            let read_bytes = piece.len();
            self.is_quoted ^= self.bound.toggles_quoting(piece);
            self.input.consume(read_bytes);
            self.done_bytes += read_bytes as u64;
            if read_bytes == 0 || (line_end.is_some() && !self.is_quoted) {
                self.is_quoted = false;
                return Ok(());
            }
            self.number += u64::from(line_end.is_some());
        }
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
    const SMALL_QUOTED: Bound = Bound { plain_bytes_max: 5, escape: (b'"', 1) };

    fn too_long<R: BufRead>(lines: &mut Lines<R>) -> u64 {
        match lines.advance() {
            Err(ReadError::Malformed { line, what }) if what == "the line is longer than any item" => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn endless_lines_are_named() {
        let mut lines = Lines::up_to(SMALL, &b"abc\nabcdefghijk"[..]);
        assert!(lines.advance().expect("a line") && lines.content() == b"abc");
        assert_eq!(too_long(&mut lines), 2);
        let bound = Bound { plain_bytes_max: 1 << 20, ..SMALL };
        let mut endless = Lines::up_to(bound, io::BufReader::new(io::repeat(0)));
        assert_eq!(too_long(&mut endless), 1);
        assert!(endless.done_bytes() <= 2 * PIECE_BYTES, "{}", endless.done_bytes());
    }

    #[test]
    fn lines_after_too_long_ones_are_read() {
        let text = b"abcdefghijk\nabc\nabcdefghijkl\nabcdefghijk\nd\nabcdefghijk";
        let mut lines = Lines::up_to(SMALL, io::BufReader::with_capacity(3, &text[..]));
        assert_eq!(too_long(&mut lines), 1);
        assert!(lines.advance().expect("a line") && lines.content() == b"abc" && lines.number() == 2);
        assert_eq!((too_long(&mut lines), too_long(&mut lines)), (3, 4));
        assert!(lines.advance().expect("a line") && lines.content() == b"d" && lines.number() == 5);
        assert_eq!(too_long(&mut lines), 6);
        assert!(!lines.advance().expect("the end"));
        assert_eq!(lines.done_bytes(), text.len() as u64);
    }

    #[test]
    fn quoted_lines_of_long_records_are_skipped() {
        for (text, is_quoted) in
            [(&b"abcdefghi,\"j\nk\"\"\nl\",\nend\n"[..], false), (b"abcdefghijk\nj\"\"k\nl\"\nend\n", true)]
        {
            let mut lines = Lines::up_to(SMALL_QUOTED, io::BufReader::with_capacity(3, text));
            let advanced = if is_quoted { lines.advance_quoted() } else { lines.advance() };
            assert!(matches!(advanced, Err(ReadError::Malformed { line: 1, .. })), "{advanced:?}");
            assert!(lines.advance().expect("a line") && lines.content() == b"end" && lines.number() == 4);
        }
        let mut lines = Lines::up_to(SMALL_QUOTED, &b"\"a\nb,c\nd\"\nend\n\"f\ng\n"[..]);
        assert!(lines.advance().expect("a line"));
        lines.skip_quoted();
        assert!(lines.advance().expect("a line") && lines.content() == b"end" && lines.number() == 4);
        assert!(lines.advance().expect("a line") && lines.advance_quoted().expect("a line"));
        assert!(!lines.advance().expect("the end"));
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
        assert!(matches!(&error, ReadError::Input(error) if error.to_string().contains("UTF-16")), "{error:?}");
    }
}
