use crate::number::double_text;

/// The protocol version of replies. Requests are the same in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The initial version of every connection.
    #[default]
    Resp2,
    /// Has additional types for null, maps, sets and texts; in RESP2 they are written as the most similar older type.
    Resp3,
}

/// Writes replies to the end of a buffer.
///
/// An array is its header followed by its elements, each written by one of the other methods.
#[derive(Debug)]
pub struct Reply<'a> {
    output: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    /// Creates a writer that appends to `output`.
    pub fn new(output: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { output, protocol }
    }

    /// Uses this version from now on.
    pub fn switch_to(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Writes a short text without line ends, such as `OK`.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes a short text of any bytes. Line ends in it become spaces.
    pub fn status(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// Writes an error: a code in capitals, a space and a sentence. Line ends in it become spaces.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// Writes a byte string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.output.reserve(bytes.len() + 32);
        self.bulk_header(bytes.len() as u64);
        self.output.extend_from_slice(bytes);
        self.bulk_end();
    }

    /// Begins a byte string whose bytes the caller appends, followed by [`Reply::bulk_end`].
    pub fn bulk_header(&mut self, len_bytes: u64) {
        self.number(b'$', len_bytes);
    }

    /// Ends a byte string.
    pub fn bulk_end(&mut self) {
        self.output.extend_from_slice(b"\r\n");
    }

    /// Writes null instead of a byte string.
    pub fn null_bulk(&mut self) {
        self.null(b"$-1\r\n");
    }

    /// Writes null instead of an array.
    pub fn null_array(&mut self) {
        self.null(b"*-1\r\n");
    }

    /// Begins an array: the next `count` replies are its elements.
    pub fn array(&mut self, count: usize) {
        self.number(b'*', count as u64);
    }

    /// Begins a map: the next `count` pairs of replies are its keys and values.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(2 * count),
            Protocol::Resp3 => self.number(b'%', count as u64),
        }
    }

    /// Begins a set: the next `count` replies are its elements.
    pub fn set(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(count),
            Protocol::Resp3 => self.number(b'~', count as u64),
        }
    }

    /// Writes a human-readable text.
    pub fn text(&mut self, text: &str) {
        self.verbatim(text.as_bytes());
    }

    /// Like [`Reply::text`], for any bytes.
    pub fn verbatim(&mut self, text: &[u8]) {
        self.verbatim_in(b"txt", text);
    }

    /// Like [`Reply::verbatim`], with a format of three characters; a shorter one is filled with spaces.
    pub fn verbatim_in(&mut self, format: &[u8], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.number(b'=', text.len() as u64 + 4);
                self.output.extend(format.iter().copied().chain(*b"   ").take(3));
                self.output.push(b':');
                self.output.extend_from_slice(text);
                self.bulk_end();
            }
        }
    }

    /// Begins a push message, which answers no request: the next `count` replies are its parts.
    pub fn push(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(count),
            Protocol::Resp3 => self.number(b'>', count as u64),
        }
    }

    /// Begins attributes of the following reply: the next `count` pairs of replies are keys and values. Only if
    /// [`Reply::protocol`] is [`Protocol::Resp3`]; RESP2 has no attributes.
    pub fn attribute(&mut self, count: usize) {
        self.number(b'|', count as u64);
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.integer(value.into()),
            Protocol::Resp3 => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// Writes a floating-point number as [`double_text`] formats it.
    pub fn double(&mut self, value: f64) {
        let text = double_text(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes an integer of any length, given as its decimal digits.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => self.line(b'(', digits.as_bytes()),
        }
    }

    /// Returns the protocol version.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the length of the buffer.
    pub fn len_bytes(&self) -> usize {
        self.output.len()
    }

    /// Removes everything after the first `len_bytes` of the buffer.
    pub fn truncate(&mut self, len_bytes: usize) {
        self.output.truncate(len_bytes);
    }

    /// Writes complete replies that another writer of the same version has made.
    pub fn append(&mut self, replies: &[u8]) {
        self.output.extend_from_slice(replies);
    }

    /// Returns a writer to the same buffer, for another function.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply { output: self.output, protocol: self.protocol }
    }

    fn null(&mut self, resp2: &[u8]) {
        self.output.extend_from_slice(match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => b"_\r\n",
        });
    }

    fn number(&mut self, kind: u8, value: impl itoa::Integer) {
        self.output.push(kind);
        self.output.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.output.push(kind);
        self.output.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.output.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_in(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
        let mut output = Vec::new();
        write(&mut Reply::new(&mut output, protocol));
        output
    }

    fn written(write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
        written_in(Protocol::Resp2, write)
    }

    #[test]
    fn every_kind() {
        assert_eq!(written(|r| r.simple("OK")), b"+OK\r\n");
        assert_eq!(written(|r| r.status(b"a\r\nb")), b"+a  b\r\n");
        assert_eq!(written(|r| r.error(b"ERR two\r\nlines")), b"-ERR two  lines\r\n");
        assert_eq!(written(|r| r.integer(i64::MIN)), b":-9223372036854775808\r\n");
        assert_eq!(written(|r| r.bulk(b"a\r\nb")), b"$4\r\na\r\nb\r\n");
        assert_eq!(written(|r| r.bulk(b"")), b"$0\r\n\r\n");
        assert_eq!(written(|r| r.null_bulk()), b"$-1\r\n");
        assert_eq!(written(|r| r.null_array()), b"*-1\r\n");
        assert_eq!(written(|r| r.array(2)), b"*2\r\n");
        assert_eq!(written(|r| r.map(2)), b"*4\r\n");
        assert_eq!(written(|r| r.set(2)), b"*2\r\n");
        assert_eq!(written(|r| r.text("a b")), b"$3\r\na b\r\n");
        assert_eq!(written(|r| r.push(2)), b"*2\r\n");
        assert_eq!(written(|r| r.boolean(false)), b":0\r\n");
        assert_eq!(written(|r| r.double(0.5)), b"$3\r\n0.5\r\n");
        assert_eq!(written(|r| r.big_number("12")), b"$2\r\n12\r\n");
    }

    #[test]
    fn kinds_of_resp3() {
        let written = |write: fn(&mut Reply<'_>)| written_in(Protocol::Resp3, write);
        assert_eq!(written(|r| r.null_bulk()), b"_\r\n");
        assert_eq!(written(|r| r.null_array()), b"_\r\n");
        assert_eq!(written(|r| r.map(2)), b"%2\r\n");
        assert_eq!(written(|r| r.set(2)), b"~2\r\n");
        assert_eq!(written(|r| r.text("a b")), b"=7\r\ntxt:a b\r\n");
        assert_eq!(written(|r| r.verbatim_in(b"md", b"a b")), b"=7\r\nmd :a b\r\n");
        assert_eq!(written(|r| r.push(2)), b">2\r\n");
        assert_eq!(written(|r| r.attribute(1)), b"|1\r\n");
        assert_eq!(written(|r| r.boolean(true)), b"#t\r\n");
        assert_eq!(written(|r| r.double(0.5)), b",0.5\r\n");
        assert_eq!(written(|r| r.double(f64::NEG_INFINITY)), b",-inf\r\n");
        assert_eq!(written(|r| r.big_number("12")), b"(12\r\n");
        assert_eq!(written(|r| r.bulk(b"a b")), b"$3\r\na b\r\n");
    }
}
