//! The formats of `load` and `dump`: lines of text, which can hold any bytes, binary dumps (`hikv::dump`), and dumps of
//! Redis (the crate `rdb`).

mod changes;
mod csv;
mod frame;
mod item;
mod jsonl;
mod lines;
#[cfg(test)]
mod tests;
mod tsv;

use std::io::{self, BufRead, Write};
use std::path::Path;

use clap::ValueEnum;
use clap::builder::PossibleValue;

pub(crate) use changes::{Change, ChangeReader, Operation};
pub(crate) use frame::Frame;
pub(crate) use item::Item;
pub(crate) use tsv::Escaped;

use frame::Mark;
use lines::Lines;

/// The error for a file whose extension [`FileFormat::of_file`] does not recognise.
pub(crate) const UNKNOWN_FORMAT: &str = "the extension names no format; give --format tsv, csv, jsonl, hikv or rdb";

/// A text format of items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; \t \n \r \\ \0 and \xHH represent bytes
    Tsv,
    /// Two columns as in RFC 4180, without a header; invalid UTF-8 is written as it is
    Csv,
    /// One object {"key":…,"value":…} per line; key_base64 and value_base64 for bytes that are not UTF-8
    Jsonl,
}

impl Format {
    /// Writes one item.
    pub(crate) fn write(self, key: &[u8], value: &[u8], out: &mut impl Write) -> io::Result<()> {
        match self {
            Format::Tsv => tsv::write(key, value, out),
            Format::Csv => csv::write(key, value, out),
            Format::Jsonl => jsonl::write(key, value, out),
        }
    }

    /// Writes the first line of a dump.
    pub(crate) fn begin(self, out: &mut impl Write) -> io::Result<()> {
        Mark::Begin.write(self, out)
    }

    /// Writes the last line of a dump of `items` items.
    pub(crate) fn end(self, items: u64, out: &mut impl Write) -> io::Result<()> {
        Mark::End { items }.write(self, out)
    }
}

/// The format of a file of items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileFormat {
    /// Lines.
    Text(Format),
    /// A binary dump.
    Hikv,
    /// A dump of Redis.
    Rdb,
}

impl FileFormat {
    /// The default format of standard input and output.
    pub(crate) const TSV: FileFormat = FileFormat::Text(Format::Tsv);

    /// Returns the format for the extension of `file`.
    pub(crate) fn of_file(file: &Path) -> Option<FileFormat> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" => Some(FileFormat::Text(Format::Tsv)),
            "csv" => Some(FileFormat::Text(Format::Csv)),
            "jsonl" | "ndjson" => Some(FileFormat::Text(Format::Jsonl)),
            "hikv" => Some(FileFormat::Hikv),
            "rdb" => Some(FileFormat::Rdb),
            _ => None,
        }
    }
}

impl ValueEnum for FileFormat {
    fn value_variants<'a>() -> &'a [FileFormat] {
        &[
            FileFormat::Text(Format::Tsv),
            FileFormat::Text(Format::Csv),
            FileFormat::Text(Format::Jsonl),
            FileFormat::Hikv,
            FileFormat::Rdb,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            FileFormat::Text(format) => format.to_possible_value(),
            FileFormat::Hikv => {
                Some(PossibleValue::new("hikv").help("Binary, with checksums, which detect damage and missing parts"))
            }
            FileFormat::Rdb => Some(PossibleValue::new("rdb").help(
                "The dump.rdb of Redis: the keys of all 16 databases of `hikv serve`, with their types and expiry",
            )),
        }
    }
}

/// The reason why an item could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The input failed.
    Input(io::Error),
    /// The text is not an item; reading continues with the next line after it.
    Malformed {
        /// The line in which the item begins, from 1.
        line: u64,
        /// A description of the error.
        what: String,
    },
    /// A dump is incomplete; reading ends.
    CutOff {
        /// The last line, from 1.
        line: u64,
        /// A description of the missing part.
        what: String,
    },
}

/// Reads items one by one; skips blank lines.
pub(crate) struct Reader<R> {
    lines: Lines<R>,
    format: Format,
    item_line: u64,
    frame: Frame,
}

impl<R: BufRead> Reader<R> {
    /// Reads `input` as `format`.
    pub(crate) fn new(input: R, format: Format) -> Reader<R> {
        Reader { lines: Lines::new(input, format), format, item_line: 0, frame: Frame::default() }
    }

    /// Reads the next item; returns false at the end of the input.
    pub(crate) fn read(&mut self, item: &mut Item) -> Result<bool, ReadError> {
        loop {
            if !self.lines.advance().inspect_err(|_| self.frame.count())? {
                return self.frame.end().map(|()| false).map_err(|what| self.cut_off(what));
            }
            if self.lines.content().is_empty() {
                continue;
            }
            match Mark::of_line(self.lines.content(), self.format) {
                Some(mark) => self.frame.meet(mark).map_err(|what| self.cut_off(what))?,
                None => break,
            }
        }
        self.item_line = self.lines.number();
        let parsed = match self.format {
            Format::Tsv => tsv::parse(self.lines.content(), item),
            Format::Csv => csv::parse(&mut self.lines, item).inspect_err(|_| self.frame.count())?,
            Format::Jsonl => jsonl::parse(self.lines.content(), item),
        };
        if !self.lines.is_ended() {
            // The line at which a dump is cut off may look like an item with a shorter value.
            self.frame.end().map_err(|what| self.cut_off(what))?;
        }
        self.frame.count();
        parsed.map(|()| true).map_err(|what| ReadError::Malformed { line: self.item_line, what })
    }

    fn cut_off(&self, what: String) -> ReadError {
        ReadError::CutOff { line: self.lines.number(), what }
    }

    /// Returns the part of a dump that was read.
    pub(crate) fn frame(&self) -> Frame {
        self.frame
    }

    /// Returns the line in which the last item began, from 1.
    pub(crate) fn item_line(&self) -> u64 {
        self.item_line
    }

    /// Returns the length of the input that was read so far.
    pub(crate) fn done_bytes(&self) -> u64 {
        self.lines.done_bytes()
    }
}
