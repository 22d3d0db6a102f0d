//! The first and the last line of a text dump, by which `load` detects that a dump was cut off.
//!
//! Neither line is an item in any format: TSV without a tab, CSV with one column, JSON Lines with other names. Text of
//! other programs has neither line. A text may contain several dumps, one after the other.

use std::io::{self, Write};

use super::Format;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first or the last line of a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// The first line.
    Begin,
    /// The last line.
    End {
        /// The number of items in the dump.
        items: u64,
    },
}

impl Mark {
    /// Writes the line.
    pub(super) fn write(self, format: Format, out: &mut impl Write) -> io::Result<()> {
        let [begin, before, behind] = texts(format);
        match self {
            Mark::Begin => writeln!(out, "{begin}"),
            Mark::End { items } => writeln!(out, "{before}{items}{behind}"),
        }
    }

    /// Parses a mark; `None` if `line` is not one.
    pub(super) fn of_line(line: &[u8], format: Format) -> Option<Mark> {
        // Each of several dumps may have been saved by an editor, which added a mark.
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let [begin, before, behind] = texts(format).map(str::as_bytes);
        if line == begin {
            return Some(Mark::Begin);
        }
        let count = line.strip_prefix(before)?.strip_suffix(behind)?;
        Some(Mark::End { items: str::from_utf8(count).ok()?.parse().ok()? })
    }
}

/// Returns the first line, and the text before and after the count in the last line.
fn texts(format: Format) -> [&'static str; 3] {
    match format {
        Format::Tsv | Format::Csv => ["#hikv dump begins", "#hikv dump ends: ", " items"],
        Format::Jsonl => [r#"{"hikv_dump":"begins"}"#, r#"{"hikv_dump":"ends","items":"#, "}"],
    }
}

/// The part of a dump that a reader has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Frame {
    /// No first line: text of another program, or of an older version of hikv.
    #[default]
    Unmarked,
    /// The first line, and lines after it, which are items or malformed.
    Open {
        /// The number of these lines.
        items: u64,
    },
    /// The last line, with the correct count.
    Closed,
}

impl Frame {
    /// Counts an item or a malformed line.
    pub(super) fn count(&mut self) {
        match self {
            Frame::Open { items } => *items += 1,
            Frame::Unmarked | Frame::Closed => *self = Frame::Unmarked,
        }
    }

    /// Processes a mark.
    ///
    /// # Errors
    /// The mark is not the expected one, or its count is wrong.
    pub(super) fn meet(&mut self, mark: Mark) -> Result<(), String> {
        *self = match (*self, mark) {
            (Frame::Open { items }, Mark::Begin) => {
                return Err(format!("the dump is cut off after {items} items: another dump begins"));
            }
            (_, Mark::Begin) => Frame::Open { items: 0 },
            (Frame::Open { items: found }, Mark::End { items }) if found != items => {
                return Err(format!(
                    "the dump had {items} items, but {found} are there; if it was edited by hand, remove its first and last line"
                ));
            }
            (Frame::Open { .. }, Mark::End { .. }) => Frame::Closed,
            (_, Mark::End { .. }) => return Err("the last line of a dump, whose first line is missing".to_owned()),
        };
        Ok(())
    }

    /// Checks that no dump is open at the end of the input.
    pub(super) fn end(self) -> Result<(), String> {
        match self {
            Frame::Open { items } => Err(format!("the dump is cut off after {items} items: its last line is missing")),
            Frame::Unmarked | Frame::Closed => Ok(()),
        }
    }
}
