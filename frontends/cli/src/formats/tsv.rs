//! Tab-separated values: a key, a tab, a value. Escapes with a backslash keep any bytes on one line of text.

use std::fmt;
use std::io::{self, Write};

use super::item::Item;

/// The part of a malformed line that the error quotes.
const SHOWN_BYTES_MAX: usize = 80;

/// The byte-order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes one item. Invalid UTF-8 and control characters are escaped, so the file is text. A byte-order mark at the
/// start of a key is also escaped, because the file may begin with that key.
pub(super) fn write(key: &[u8], value: &[u8], out: &mut impl Write) -> io::Result<()> {
    let key = match key.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => {
            out.write_all(b"\\xef\\xbb\\xbf")?;
            rest
        }
        None => key,
    };
    writeln!(out, "{}\t{}", Escaped(key), Escaped(value))
}

/// Displays bytes as text, with the escapes of this format.
pub(crate) struct Escaped<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            write_text(chunk.valid(), f)?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(plain) = rest.find(|c: char| c == '\\' || c.is_ascii_control()) {
        f.write_str(&rest[..plain])?;
        match rest.as_bytes()[plain] {
            b'\t' => f.write_str("\\t")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\\' => f.write_str("\\\\")?,
            0 => f.write_str("\\0")?,
            control => write!(f, "\\x{control:02x}")?,
        }
        rest = &rest[plain + 1..];
    }
    f.write_str(rest)
}

/// Reads one item from a line.
pub(super) fn parse(line: &[u8], item: &mut Item) -> Result<(), String> {
    let mut columns = line.split(|&byte| byte == b'\t');
    let (Some(key), Some(value), None) = (columns.next(), columns.next(), columns.next()) else {
        let tab_count = line.iter().filter(|&&byte| byte == b'\t').count();
        let (shown, more) = (&line[..line.len().min(SHOWN_BYTES_MAX)], line.len() > SHOWN_BYTES_MAX);
        let shown = format!("{}{}", Escaped(shown), if more { "…" } else { "" });
        return Err(format!("expected a key, one tab and a value; found {tab_count} tabs in '{shown}'"));
    };
    unescape(key, &mut item.key)?;
    unescape(value, &mut item.value)
}

/// Returns the bytes of one column.
pub(super) fn unescaped(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    unescape(text, &mut bytes)?;
    Ok(bytes)
}

fn unescape(mut text: &[u8], bytes: &mut Vec<u8>) -> Result<(), String> {
    bytes.clear();
    while let Some(plain) = text.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&text[..plain]);
        let (byte, len_bytes) = escape(&text[plain + 1..])?;
        bytes.push(byte);
        text = &text[plain + 1 + len_bytes..];
    }
    bytes.extend_from_slice(text);
    Ok(())
}

/// Returns the byte that an escape represents, and the escape's length after the backslash.
fn escape(text: &[u8]) -> Result<(u8, usize), String> {
    match text {
        [b't', ..] => Ok((b'\t', 1)),
        [b'n', ..] => Ok((b'\n', 1)),
        [b'r', ..] => Ok((b'\r', 1)),
        [b'\\', ..] => Ok((b'\\', 1)),
        [b'0', ..] => Ok((0, 1)),
        [b'x', high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => Ok((high << 4 | low, 3)),
            _ => Err(format!("\\x{} is not an escape; write two hex digits after \\x", Escaped(&[*high, *low]))),
        },
        [b'x', ..] => Err("an incomplete escape; write two hex digits after \\x".to_owned()),
        [other, ..] => {
            Err(format!("\\{} is not an escape; write \\t, \\n, \\r, \\\\, \\0 or \\xHH", Escaped(&[*other])))
        }
        [] => Err("a backslash ends the column; write \\\\ for a backslash".to_owned()),
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}
