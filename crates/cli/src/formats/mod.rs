//! The forms of items that `load` reads and `dump` writes: lines of text, each of which carries any bytes, and hikv's own
//! dumps (`hikv::dump`).

mod changes;
mod csv;
mod frame;
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
pub(crate) use tsv::Escaped;

use frame::Mark;
use lines::Lines;

/// What to say of a file whose format [`Format::of_file`] does not know.
pub(crate) const UNKNOWN_FORMAT: &str = "its name tells no format: give --format tsv, csv, jsonl or hikv";

/// How items are written as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Key, tab, value; \t \n \r \\ \0 and \xHH stand for bytes
    Tsv,
    /// Two columns after RFC 4180, without a header; bytes that are not UTF-8 stand as they are
    Csv,
    /// {"key":…,"value":…} a line; key_base64 and value_base64 for bytes that are not UTF-8
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

    /// Writes the last line of a dump of so many items.
    pub(crate) fn end(self, items: u64, out: &mut impl Write) -> io::Result<()> {
        Mark::End { items }.write(self, out)
    }
}

/// What a file of items is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileFormat {
    /// Lines.
    Text(Format),
    /// A dump of hikv's own format.
    Hikv,
}

impl FileFormat {
    /// What standard input and output are unless told otherwise.
    pub(crate) const TSV: FileFormat = FileFormat::Text(Format::Tsv);

    /// The format that the extension of `file` names.
    pub(crate) fn of_file(file: &Path) -> Option<FileFormat> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" => Some(FileFormat::Text(Format::Tsv)),
            "csv" => Some(FileFormat::Text(Format::Csv)),
            "jsonl" | "ndjson" => Some(FileFormat::Text(Format::Jsonl)),
            "hikv" => Some(FileFormat::Hikv),
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
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            FileFormat::Text(format) => format.to_possible_value(),
            FileFormat::Hikv => {
                Some(PossibleValue::new("hikv").help("Binary, with checksums: what is cut off is noticed"))
            }
        }
    }
}

/// One item of a file, in memory that is used again.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Why an item could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The input failed.
    Input(io::Error),
    /// The text is no item; reading goes on with the next line.
    Malformed {
        /// Where the item begins, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A dump is not whole; nothing more is read.
    CutOff {
        /// The last line, from 1.
        line: u64,
        /// What is missing.
        what: String,
    },
}

/// Reads items one by one; blank lines are skipped.
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

    /// Reads the next item; false at the end of the input.
    pub(crate) fn read(&mut self, item: &mut Item) -> Result<bool, ReadError> {
        loop {
            if !self.lines.advance().map_err(ReadError::Input)? {
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
            Format::Csv => csv::parse(&mut self.lines, item).map_err(ReadError::Input)?,
            Format::Jsonl => jsonl::parse(self.lines.content(), item),
        };
        if !self.lines.is_ended() {
            // A line of a dump that is cut off may look like an item, whose value is not the one that was dumped.
            self.frame.end().map_err(|what| self.cut_off(what))?;
        }
        self.frame.count();
        parsed.map(|()| true).map_err(|what| ReadError::Malformed { line: self.item_line, what })
    }

    fn cut_off(&self, what: String) -> ReadError {
        ReadError::CutOff { line: self.lines.number(), what }
    }

    /// How much of a dump was read.
    pub(crate) fn frame(&self) -> Frame {
        self.frame
    }

    /// The line that the last item began in, from 1.
    pub(crate) fn item_line(&self) -> u64 {
        self.item_line
    }

    /// How much of the input has become items.
    pub(crate) fn done_bytes(&self) -> u64 {
        self.lines.done_bytes()
    }
}
