//! Writing a dump.

use std::io::{self, Write};

use pmem::Checksum;

use super::layout::{
    BlockHeader, BlockKind, DUMP_HAS_TREES, End, FLAG_EXPIRY, FLAG_PIECES, PIECE_BYTES, RECORD_HEADER_BYTES,
    RECORD_ITEM, RecordHeader, WHOLE_VALUE_BYTES_MAX, header,
};
use crate::Error;

/// Writes a dump item by item. The dump is complete once [`DumpWriter::finish`] has returned.
#[derive(Debug)]
pub struct DumpWriter<W> {
    out: W,
    /// Records to be written as one block.
    records: Vec<u8>,
    block_count: u32,
    item_count: u64,
    /// Bytes written, and their checksum.
    at: u64,
    checksum: Checksum,
}

impl<W: Write> DumpWriter<W> {
    /// Begins a dump of the store `uuid`.
    ///
    /// # Errors
    /// The output's error.
    pub fn new(out: W, uuid: [u8; 16]) -> io::Result<DumpWriter<W>> {
        DumpWriter::begin(out, uuid, 0)
    }

    /// Begins a dump of the store `uuid` with named trees. Its keys are the stored ones of all trees.
    ///
    /// # Errors
    /// The output's error.
    #[doc(hidden)]
    pub fn of_trees(out: W, uuid: [u8; 16]) -> io::Result<DumpWriter<W>> {
        DumpWriter::begin(out, uuid, DUMP_HAS_TREES)
    }

    fn begin(out: W, uuid: [u8; 16], flags: u32) -> io::Result<DumpWriter<W>> {
        let mut writer = DumpWriter {
            out,
            records: Vec::with_capacity(PIECE_BYTES),
            block_count: 0,
            item_count: 0,
            at: 0,
            checksum: Checksum::default(),
        };
        writer.write(&header(uuid, flags))?;
        Ok(writer)
    }

    /// Adds an item. `expires_at_ms` is its expiry in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if no store can hold the item; the dump is unchanged. The output's error; the
    /// dump is then incomplete.
    pub fn put(&mut self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> io::Result<()> {
        check_lengths(key, value).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let is_whole = value.len() <= WHOLE_VALUE_BYTES_MAX;
        let record_bytes = RECORD_HEADER_BYTES + 8 + key.len() + if is_whole { value.len() } else { 0 };
        if self.records.len() + record_bytes > PIECE_BYTES {
            self.write_records()?;
        }
        self.add_record(key, value, expires_at_ms, is_whole);
        self.item_count += 1;
        if is_whole {
            return Ok(());
        }
        self.write_records()?;
        value.chunks(PIECE_BYTES).try_for_each(|piece| self.write_block(BlockKind::Piece, piece))
    }

    /// Returns the number of items added so far.
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    /// Writes the end, flushes the output and returns it.
    ///
    /// # Errors
    /// The output's error; the dump is then incomplete.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_records()?;
        let end = End { item_count: self.item_count, stream_bytes: self.at, checksum: self.checksum.value() };
        self.write_block(BlockKind::End, &end.to_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn add_record(&mut self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>, is_whole: bool) {
        let expiry = if expires_at_ms.is_some() { FLAG_EXPIRY } else { 0 };
        let pieces = if is_whole { 0 } else { FLAG_PIECES };
        let header = RecordHeader {
            kind: RECORD_ITEM,
            flags: expiry | pieces,
            key_bytes: key.len() as u16,
            value_bytes: value.len() as u32,
        };
        self.records.extend_from_slice(&header.to_bytes());
        self.records.extend(expires_at_ms.into_iter().flat_map(u64::to_le_bytes));
        self.records.extend_from_slice(key);
        if is_whole {
            self.records.extend_from_slice(value);
        }
    }

    fn write_records(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut records = std::mem::take(&mut self.records);
        self.write_block(BlockKind::Records, &records)?;
        records.clear();
        self.records = records;
        Ok(())
    }

    fn write_block(&mut self, kind: BlockKind, contents: &[u8]) -> io::Result<()> {
        let header = BlockHeader::of(kind, self.block_count, contents);
        self.block_count = self.block_count.wrapping_add(1);
        self.write(&header.to_bytes())?;
        self.write(contents)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        self.checksum = self.checksum.update(bytes);
        Ok(())
    }
}

fn check_lengths(key: &[u8], value: &[u8]) -> Result<(), Error> {
    if key.len() > crate::Limits::KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len_bytes: key.len() });
    }
    if value.len() as u64 > crate::Limits::VALUE_BYTES_MAX {
        return Err(Error::ValueTooLong { len_bytes: value.len() as u64 });
    }
    Ok(())
}
