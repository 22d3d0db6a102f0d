//! The incremental request parser.
//!
//! Bytes arrive in pieces. The parser remembers its position in the incomplete request, so no piece is read twice, and
//! returns only complete requests. Like Redis, it does not check the two bytes that end an argument.

use crate::inline::split_line;
use crate::number::parse_integer;
use crate::request::{Argument, Requests};
use crate::{Limits, ProtocolError};

/// Capacity of the argument list kept between requests, so that an idle connection holds little memory.
const ARGUMENTS_KEPT_COUNT_MAX: usize = 32;

/// The expected next bytes.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// `*`, or an inline command.
    Request,
    /// `$` and a length.
    BulkLength,
    /// This many bytes and a line end.
    Bulk { len_bytes: usize },
}

/// Finds requests in a connection's bytes.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    expected: Expected,
    /// Position in the incomplete request, from its start.
    position: usize,
    /// There is no line end between `position` and here.
    searched: usize,
    /// Missing arguments of the incomplete request.
    missing_count: usize,
    arguments: Vec<Argument>,
}

impl Parser {
    /// Creates a parser for the start of a connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            expected: Expected::Request,
            position: 0,
            searched: 0,
            missing_count: 0,
            arguments: Vec::new(),
        }
    }

    /// Applies other limits from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Appends the complete requests in `input` to `requests` until that holds `count_max`, and returns the number of
    /// consumed bytes. The next call's input must begin with the first byte not consumed.
    ///
    /// # Errors
    /// The first protocol error; the requests before it have been appended.
    pub fn parse(&mut self, input: &[u8], requests: &mut Requests, count_max: usize) -> Result<usize, ProtocolError> {
        let mut start = 0;
        while requests.len() < count_max && self.request(start, &input[start..], requests)? {
            start += self.position;
            self.begin();
        }
        Ok(start)
    }

    /// Returns the length of input, from the first byte not consumed, that completes the long argument being received;
    /// 0 if there is none.
    pub fn wanted_bytes(&self) -> usize {
        match self.expected {
            Expected::Bulk { len_bytes } => self.position + len_bytes + 2,
            Expected::Request | Expected::BulkLength => 0,
        }
    }

    fn begin(&mut self) {
        (self.position, self.searched) = (0, 0);
        self.expected = Expected::Request;
        self.arguments.clear();
        self.arguments.shrink_to(ARGUMENTS_KEPT_COUNT_MAX);
    }

    /// Returns whether `input` holds a complete request; `position` is then its length.
    fn request(&mut self, start: usize, input: &[u8], requests: &mut Requests) -> Result<bool, ProtocolError> {
        loop {
            let advanced = match self.expected {
                Expected::Request => match input.first() {
                    None => return Ok(false),
                    Some(b'*') => self.multibulk_length(input)?,
                    Some(_) => return self.inline(input, requests),
                },
                Expected::BulkLength => self.bulk_length(input)?,
                Expected::Bulk { len_bytes } => self.bulk(input, len_bytes),
            };
            if !advanced {
                return Ok(false);
            }
            if self.missing_count == 0 {
                break;
            }
        }
        if !self.arguments.is_empty() {
            requests.push(start, &self.arguments);
        }
        Ok(true)
    }

    fn multibulk_length(&mut self, input: &[u8]) -> Result<bool, ProtocolError> {
        let Some(line) = self.line(input, ProtocolError::TooBigMultibulkCount)? else { return Ok(false) };
        let count = parse_integer(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
        self.limits.check_count(count)?;
        self.missing_count = count.max(0) as usize;
        self.expected = Expected::BulkLength;
        Ok(true)
    }

    fn bulk_length(&mut self, input: &[u8]) -> Result<bool, ProtocolError> {
        let Some(line) = self.line(input, ProtocolError::TooBigBulkCount)? else { return Ok(false) };
        let digits = match line {
            [b'$', digits @ ..] => digits,
            // An empty line begins with its line end.
            other => return Err(ProtocolError::ExpectedBulk { found: other.first().copied().unwrap_or(b'\r') }),
        };
        let len_bytes =
            parse_integer(digits).and_then(|len| usize::try_from(len).ok()).ok_or(ProtocolError::InvalidBulkLength)?;
        self.limits.check_bulk(len_bytes)?;
        if self.position + len_bytes + 2 > Limits::REQUEST_BYTES_MAX {
            return Err(ProtocolError::TooBigRequest);
        }
        self.expected = Expected::Bulk { len_bytes };
        Ok(true)
    }

    fn bulk(&mut self, input: &[u8], len_bytes: usize) -> bool {
        let end = self.position + len_bytes;
        if input.len() < end + 2 {
            return false;
        }
        self.arguments.push(Argument::new(self.position, end));
        self.move_to(end + 2);
        self.missing_count -= 1;
        self.expected = Expected::BulkLength;
        true
    }

    /// Returns the next line without its `\r\n` and moves past it; `None` if it is incomplete.
    fn line<'a>(&mut self, input: &'a [u8], too_big: ProtocolError) -> Result<Option<&'a [u8]>, ProtocolError> {
        let Some(end) = self.find(input, b'\r', too_big)? else { return Ok(None) };
        if input.len() < end + 2 {
            return Ok(None);
        }
        let line = &input[self.position..end];
        self.move_to(end + 2);
        Ok(Some(line))
    }

    fn inline(&mut self, input: &[u8], requests: &mut Requests) -> Result<bool, ProtocolError> {
        let Some(end) = self.find(input, b'\n', ProtocolError::TooBigInline)? else { return Ok(false) };
        let line = &input[..end];
        let words = split_line(line.strip_suffix(b"\r").unwrap_or(line)).ok_or(ProtocolError::UnbalancedQuotes)?;
        requests.push_words(&words);
        self.move_to(end + 1);
        Ok(true)
    }

    /// Returns the position of `byte`, at or after `position`; an error if the maximum line length does not contain it.
    fn find(&mut self, input: &[u8], byte: u8, too_big: ProtocolError) -> Result<Option<usize>, ProtocolError> {
        let window_end = input.len().min(self.position + Limits::LINE_BYTES_MAX + 1);
        match input[self.searched..window_end].iter().position(|found| *found == byte) {
            Some(distance) => {
                self.searched += distance;
                Ok(Some(self.searched))
            }
            None if window_end - self.position > Limits::LINE_BYTES_MAX => Err(too_big),
            None => {
                self.searched = window_end;
                Ok(None)
            }
        }
    }

    fn move_to(&mut self, position: usize) {
        (self.position, self.searched) = (position, position);
    }
}
