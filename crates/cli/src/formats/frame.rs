//! The first and the last line of a dump as text. A dump whose last line is missing was cut off, and `load` reports that.
//!
//! Neither line is an item in any of the formats: no tab in TSV, one column in CSV, other names in JSON Lines. Text of other
//! programs has neither line. Several dumps may follow each other in one text.

use std::io::{self, Write};

use super::Format;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line that is no item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// The first line.
    Begin,
    /// The last line.
    End {
        /// The items between the two.
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

    /// The mark that `line` is, if it is one.
    pub(super) fn of_line(line: &[u8], format: Format) -> Option<Mark> {
        // Dumps that an editor saved may follow each other.
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let [begin, before, behind] = texts(format).map(str::as_bytes);
        if line == begin {
            return Some(Mark::Begin);
        }
        let count = line.strip_prefix(before)?.strip_suffix(behind)?;
        Some(Mark::End { items: str::from_utf8(count).ok()?.parse().ok()? })
    }
}

/// The first line, and what stands before and behind the count in the last one.
fn texts(format: Format) -> [&'static str; 3] {
    match format {
        Format::Tsv | Format::Csv => ["#hikv dump begins", "#hikv dump ends: ", " items"],
        Format::Jsonl => [r#"{"hikv_dump":"begins"}"#, r#"{"hikv_dump":"ends","items":"#, "}"],
    }
}

/// How much of a dump a reader has met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Frame {
    /// No first line: text of another program, or of an older version.
    #[default]
    Unmarked,
    /// A first line, and lines behind it that are items or were to be items.
    Open {
        /// Their number.
        items: u64,
    },
    /// The last line, with the right count.
    Closed,
}

impl Frame {
    /// An item, or a line that is none.
    pub(super) fn count(&mut self) {
        match self {
            Frame::Open { items } => *items += 1,
            Frame::Unmarked | Frame::Closed => *self = Frame::Unmarked,
        }
    }

    /// A mark; an error if it is not the one that comes next.
    pub(super) fn meet(&mut self, mark: Mark) -> Result<(), String> {
        *self = match (*self, mark) {
            (Frame::Open { items }, Mark::Begin) => {
                return Err(format!("the dump is cut off after {items} items: another one begins"));
            }
            (_, Mark::Begin) => Frame::Open { items: 0 },
            (Frame::Open { items: found }, Mark::End { items }) if found != items => {
                return Err(format!(
                    "the dump had {items} items and {found} are there; of a dump that was edited by hand remove the first and the last line"
                ));
            }
            (Frame::Open { .. }, Mark::End { .. }) => Frame::Closed,
            (_, Mark::End { .. }) => return Err("the dump ends, and its first line is missing".to_owned()),
        };
        Ok(())
    }

    /// The input ends; an error if a dump has begun.
    pub(super) fn end(self) -> Result<(), String> {
        match self {
            Frame::Open { items } => Err(format!("the dump is cut off after {items} items: its last line is missing")),
            Frame::Unmarked | Frame::Closed => Ok(()),
        }
    }
}
