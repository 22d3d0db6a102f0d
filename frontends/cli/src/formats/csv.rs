//! Comma-separated values as in RFC 4180: two columns, no header.
//!
//! The reader is stricter than the `csv` crate: an unclosed quote would make the rest of a file one value, and the
//! error for a malformed line must give the line number. The tests compare reader and writer with that crate.

use std::io::{self, BufRead, Write};

use hikv::Limits;
use server::starts_with_mark;

use super::ReadError;
use super::item::Item;
use super::lines::Lines;

/// Writes one item.
pub(super) fn write(key: &[u8], value: &[u8], out: &mut impl Write) -> io::Result<()> {
    write_field(key, out)?;
    out.write_all(b",")?;
    write_field(value, out)?;
    out.write_all(b"\n")
}

fn write_field(field: &[u8], out: &mut impl Write) -> io::Result<()> {
    // Quoted because a file that begins with these bytes would seem to have a byte-order mark.
    if !field.iter().any(|byte| b",\"\r\n".contains(byte)) && !starts_with_mark(field) {
        return out.write_all(field);
    }
    out.write_all(b"\"")?;
    for (place, part) in field.split(|&byte| byte == b'"').enumerate() {
        out.write_all(if place == 0 { b"" } else { b"\"\"" })?;
        out.write_all(part)?;
    }
    out.write_all(b"\"")
}

/// Reads one item, which begins in the current line of `lines` and may continue in later lines.
pub(super) fn parse<R: BufRead>(lines: &mut Lines<R>, item: &mut Item) -> Result<Result<(), String>, ReadError> {
    let mut cursor = Cursor { lines, at: 0 };
    for (field, ending) in [(&mut item.key, Ending::Comma), (&mut item.value, Ending::Line)] {
        field.clear();
        if let Err(what) = cursor.field(field)? {
            return Ok(Err(what));
        }
        if let Err(what) = cursor.end_field(ending) {
            return Ok(Err(what));
        }
    }
    Ok(Ok(()))
}

/// The end of a field.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Comma,
    Line,
}

struct Cursor<'a, R> {
    lines: &'a mut Lines<R>,
    /// The position in the current line.
    at: usize,
}

impl<R: BufRead> Cursor<'_, R> {
    fn rest(&self) -> &[u8] {
        &self.lines.content()[self.at..]
    }

    fn field(&mut self, field: &mut Vec<u8>) -> Result<Result<(), String>, ReadError> {
        if self.rest().first() == Some(&b'"') { self.quoted(field) } else { Ok(self.unquoted(field)) }
    }

    fn unquoted(&mut self, field: &mut Vec<u8>) -> Result<(), String> {
        let text = self.rest().split(|&byte| byte == b',').next().unwrap_or_default();
        if text.contains(&b'"') {
            return Err("a quote inside a field that does not begin with one".to_owned());
        }
        field.extend_from_slice(text);
        self.at += text.len();
        Ok(())
    }

    fn quoted(&mut self, field: &mut Vec<u8>) -> Result<Result<(), String>, ReadError> {
        self.at += 1;
        loop {
            let rest = &self.lines.whole()[self.at..];
            match rest.iter().position(|&byte| byte == b'"') {
                Some(len_bytes) if rest.get(len_bytes + 1) == Some(&b'"') => {
                    field.extend_from_slice(&rest[..=len_bytes]);
                    self.at += len_bytes + 2;
                }
                Some(len_bytes) => {
                    field.extend_from_slice(&rest[..len_bytes]);
                    self.at += len_bytes + 1;
                    return Ok(Ok(()));
                }
                None => {
                    field.extend_from_slice(rest);
                    self.at = 0;
                    if field.len() as u64 > Limits::VALUE_BYTES_MAX {
                        self.lines.skip_quoted();
                        return Ok(Err("a field is longer than any value".to_owned()));
                    }
                    if !self.lines.advance_quoted()? {
                        return Ok(Err("a quote is never closed".to_owned()));
                    }
                }
            }
        }
    }

    fn end_field(&mut self, ending: Ending) -> Result<(), String> {
        match (self.rest().first(), ending) {
            (Some(b','), Ending::Comma) => {
                self.at += 1;
                Ok(())
            }
            (None, Ending::Line) => Ok(()),
            (None, Ending::Comma) => Err("expected two columns; found one".to_owned()),
            (Some(b','), Ending::Line) => Err("expected two columns; found more".to_owned()),
            (Some(_), _) => Err("text between a closing quote and the end of its field".to_owned()),
        }
    }
}
