//! Reading a dump.

use std::io::{self, Read};

use super::DumpError;
use super::layout::{
    BlockKind, DUMP_HAS_TREES, FLAG_EXPIRY, FLAG_PIECES, HEADER_BYTES, MAGIC, RECORD_HEADER_BYTES, RECORD_ITEM,
    RecordHeader, VERSION, field, is_whole,
};
use super::stream::{Stream, item_count};
use crate::Limits;

/// Reads a dump item by item, in the order of writing.
pub struct DumpReader<R> {
    stream: Stream<R>,
    uuid: [u8; 16],
    has_trees: bool,
    records: Vec<u8>,
    /// The offset of the records' block in the dump; `read_bytes` of the records were read.
    records_at: u64,
    read_bytes: usize,
    value: Unread,
    item_count: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// The end was read and is correct.
    Ended,
    /// An error occurred, so the remaining bytes cannot be trusted.
    Failed,
}

/// The unread part of a value in pieces.
#[derive(Default)]
struct Unread {
    left_bytes: u64,
    piece: Vec<u8>,
    piece_read_bytes: usize,
}

/// An item of a dump.
#[non_exhaustive]
pub struct DumpItem<'a, R> {
    /// The key.
    pub key: &'a [u8],
    /// The expiry, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<u64>,
    /// The value.
    pub value: DumpValue<'a, R>,
}

/// The value of an item of a dump.
pub enum DumpValue<'a, R> {
    /// The complete value.
    Whole(&'a [u8]),
    /// A long value, which the caller can read. The next call of [`DumpReader::next_item`] skips the unread part.
    Pieces(ValuePieces<'a, R>),
}

/// A reader of a long value. Every byte that it returns was verified by a checksum.
pub struct ValuePieces<'a, R> {
    stream: &'a mut Stream<R>,
    value: &'a mut Unread,
    state: &'a mut State,
}

impl<R: Read> DumpReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`DumpError::NotADump`] for other input; [`DumpError::Newer`]; [`DumpError::Damaged`].
    pub fn new(input: R) -> Result<DumpReader<R>, DumpError> {
        let (mut stream, mut header) = (Stream::new(input), [0; HEADER_BYTES]);
        stream.read_outside(&mut header[..MAGIC.len()]).map_err(|error| match error {
            DumpError::Truncated { .. } => DumpError::NotADump,
            other => other,
        })?;
        if header[..MAGIC.len()] != MAGIC {
            return Err(DumpError::NotADump);
        }
        stream.read_outside(&mut header[MAGIC.len()..])?;
        check_header(&header)?;
        Ok(DumpReader {
            stream,
            uuid: field(&header, 16),
            has_trees: u32::from_le_bytes(field(&header, 12)) & DUMP_HAS_TREES != 0,
            records: Vec::new(),
            records_at: 0,
            read_bytes: 0,
            value: Unread::default(),
            item_count: 0,
            state: State::Reading,
        })
    }

    /// Returns the identity of the dumped store.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Returns true if the dump is one of a store with named trees: its keys are the stored ones of all trees
    /// (`docs/format/catalog.md`).
    pub fn has_trees(&self) -> bool {
        self.has_trees
    }

    /// Returns the number of items read so far.
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    /// Returns the number of bytes read so far.
    pub fn done_bytes(&self) -> u64 {
        self.stream.at()
    }

    /// Returns the next item, or `None` once the entire dump was read and is correct.
    ///
    /// # Errors
    /// [`DumpError::Damaged`], [`DumpError::Truncated`] or [`DumpError::Input`]. After an error, no more items can be
    /// read.
    pub fn next_item(&mut self) -> Result<Option<DumpItem<'_, R>>, DumpError> {
        let found = self.advance();
        self.state = match (&found, self.state) {
            (Err(_), _) => State::Failed,
            (Ok(false), _) => State::Ended,
            (Ok(true), state) => state,
        };
        if found? { self.take_record().map(Some) } else { Ok(None) }
    }

    /// Advances to the next record. Returns false at the end.
    fn advance(&mut self) -> Result<bool, DumpError> {
        match self.state {
            State::Failed => return Err(self.damaged("an earlier part could not be read")),
            State::Ended => return Ok(false),
            State::Reading => {}
        }
        while self.value.left_bytes > 0 {
            self.value.next_piece(&mut self.stream)?;
        }
        while self.read_bytes == self.records.len() {
            (self.records_at, self.read_bytes) = (self.stream.at(), 0);
            match self.stream.read_block(&mut self.records)? {
                BlockKind::Records => {}
                BlockKind::Piece => return Err(self.damaged("a piece of a value belongs to no item")),
                BlockKind::End if item_count(&self.records) == self.item_count => return Ok(false),
                BlockKind::End => return Err(self.damaged("the end counts another number of items")),
            }
        }
        Ok(true)
    }

    fn take_record(&mut self) -> Result<DumpItem<'_, R>, DumpError> {
        let wrong = self.damaged("a record is invalid");
        let Some(record) = Record::parse(&self.records[self.read_bytes..]) else {
            self.state = State::Failed;
            return Err(wrong);
        };
        self.read_bytes += record.len_bytes;
        self.item_count += 1;
        let Record { key, expires_at_ms, value, .. } = record;
        let value = match value {
            Ok(whole) => DumpValue::Whole(whole),
            Err(left_bytes) => {
                self.value.begin(left_bytes);
                DumpValue::Pieces(ValuePieces {
                    stream: &mut self.stream,
                    value: &mut self.value,
                    state: &mut self.state,
                })
            }
        };
        Ok(DumpItem { key, expires_at_ms, value })
    }

    fn damaged(&self, what: &'static str) -> DumpError {
        DumpError::Damaged { offset: self.records_at + self.read_bytes as u64, what }
    }
}

fn check_header(header: &[u8; HEADER_BYTES]) -> Result<(), DumpError> {
    if !is_whole(header) {
        return Err(DumpError::Damaged { offset: 0, what: "the header's checksum does not match" });
    }
    let (found, flags) = (u16::from_le_bytes(field(header, 8)), u32::from_le_bytes(field(header, 12)));
    if found > VERSION {
        return Err(DumpError::Newer { found, supported: VERSION });
    }
    if flags & !DUMP_HAS_TREES != 0 {
        return Err(DumpError::UnknownFlags { flags: flags & !DUMP_HAS_TREES });
    }
    Ok(())
}

/// A record in a block.
struct Record<'a> {
    len_bytes: usize,
    key: &'a [u8],
    expires_at_ms: Option<u64>,
    /// The value, or its length if it follows in pieces.
    value: Result<&'a [u8], u64>,
}

impl<'a> Record<'a> {
    /// Decodes the record at the start of `bytes`, if it is valid and complete.
    fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let (head, rest) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>()?;
        let header = RecordHeader::from_bytes(head);
        let is_known = header.kind == RECORD_ITEM && header.flags & !(FLAG_EXPIRY | FLAG_PIECES) == 0;
        if !is_known || u64::from(header.value_bytes) > Limits::VALUE_BYTES_MAX {
            return None;
        }
        let expiry_bytes = if header.flags & FLAG_EXPIRY != 0 { 8 } else { 0 };
        let (expiry, rest) = rest.split_at_checked(expiry_bytes)?;
        let (key, rest) = rest.split_at_checked(usize::from(header.key_bytes))?;
        let (value, rest) = match header.flags & FLAG_PIECES {
            0 => rest.split_at_checked(header.value_bytes as usize).map(|(value, rest)| (Ok(value), rest))?,
            // The pieces come next, so no record may follow in this block.
            _ => rest.is_empty().then_some((Err(u64::from(header.value_bytes)), rest))?,
        };
        let expires_at_ms = expiry.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        Some(Record { len_bytes: bytes.len() - rest.len(), key, expires_at_ms, value })
    }
}

impl Unread {
    fn begin(&mut self, left_bytes: u64) {
        self.left_bytes = left_bytes;
        self.piece.clear();
        self.piece_read_bytes = 0;
    }

    fn next_piece<R: Read>(&mut self, stream: &mut Stream<R>) -> Result<(), DumpError> {
        let offset = stream.at();
        let kind = stream.read_block(&mut self.piece)?;
        let piece_bytes = self.piece.len() as u64;
        if kind != BlockKind::Piece || piece_bytes == 0 || piece_bytes > self.left_bytes {
            return Err(DumpError::Damaged { offset, what: "the next piece of a value is missing" });
        }
        self.left_bytes -= piece_bytes;
        self.piece_read_bytes = 0;
        Ok(())
    }
}

impl<R> ValuePieces<'_, R> {
    /// Returns the number of unread bytes.
    pub fn left_bytes(&self) -> u64 {
        self.value.left_bytes + (self.value.piece.len() - self.value.piece_read_bytes) as u64
    }
}

impl<R: Read> Read for ValuePieces<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.value.piece_read_bytes == self.value.piece.len() && self.value.left_bytes > 0 {
            self.value.next_piece(self.stream).map_err(|error| {
                *self.state = State::Failed;
                io::Error::other(error)
            })?;
        }
        let count = (&self.value.piece[self.value.piece_read_bytes..]).read(into)?;
        self.value.piece_read_bytes += count;
        Ok(count)
    }
}
