//! The stream of blocks. Every block is verified by its checksum, counted, and added to the checksum of the entire
//! dump.

use std::io::{ErrorKind, Read};

use pmem::Checksum;

use super::DumpError;
use super::layout::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, End, field};

/// The input, and the state of the checks so far.
pub(super) struct Stream<R> {
    input: R,
    /// Bytes read.
    at: u64,
    /// The checksum of all bytes before the last block, and of that block unless it is the end.
    checksum: Checksum,
    block_count: u32,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(input: R) -> Stream<R> {
        Stream { input, at: 0, checksum: Checksum::default(), block_count: 0 }
    }

    /// Returns the number of bytes read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Reads bytes outside of blocks.
    pub(super) fn read_outside(&mut self, into: &mut [u8]) -> Result<(), DumpError> {
        self.fill(into)?;
        self.checksum = self.checksum.update(into);
        Ok(())
    }

    /// Reads the next block's contents, and returns their kind.
    pub(super) fn read_block(&mut self, contents: &mut Vec<u8>) -> Result<BlockKind, DumpError> {
        let (offset, mut bytes) = (self.at, [0; BLOCK_HEADER_BYTES]);
        let damaged = |what| DumpError::Damaged { offset, what };
        self.fill(&mut bytes)?;
        let header = BlockHeader::from_bytes(&bytes);
        if header.len_bytes as usize > BLOCK_BYTES_MAX {
            return Err(damaged("a block is too long"));
        }
        contents.resize(header.len_bytes as usize, 0);
        self.fill(contents)?;
        // Comparing the encoded header also checks its zero bytes.
        if header.to_bytes() != bytes || header.checksum_of(contents) != header.checksum {
            return Err(damaged("a block's checksum does not match"));
        }
        if header.number != self.block_count {
            return Err(damaged("a block is not in its place"));
        }
        let kind = kind(header.kind).ok_or(damaged("a block has an unknown kind"))?;
        if kind == BlockKind::End {
            return self.confirm_sum(offset, contents).map(|()| kind);
        }
        self.block_count = self.block_count.wrapping_add(1);
        self.checksum = self.checksum.update(&bytes).update(contents);
        Ok(kind)
    }

    /// Checks that the end matches the bytes read, and that nothing follows it.
    fn confirm_sum(&mut self, offset: u64, contents: &[u8]) -> Result<(), DumpError> {
        let damaged = |offset, what| DumpError::Damaged { offset, what };
        let item_count = contents.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let expected = End { item_count, stream_bytes: offset, checksum: self.checksum.value() };
        if contents != expected.to_bytes() {
            return Err(damaged(offset, "the end does not match the preceding dump"));
        }
        match self.fill(&mut [0]) {
            Err(DumpError::Truncated { .. }) => Ok(()),
            Ok(()) => Err(damaged(self.at - 1, "bytes follow the end")),
            Err(error) => Err(error),
        }
    }

    fn fill(&mut self, mut into: &mut [u8]) -> Result<(), DumpError> {
        while !into.is_empty() {
            match self.input.read(into) {
                Ok(0) => return Err(DumpError::Truncated { offset: self.at }),
                Ok(count) => {
                    self.at += count as u64;
                    into = &mut into[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(DumpError::Input { offset: self.at, source }),
            }
        }
        Ok(())
    }
}

fn kind(number: u8) -> Option<BlockKind> {
    [BlockKind::Records, BlockKind::Piece, BlockKind::End].into_iter().find(|&kind| kind as u8 == number)
}

/// Returns the number of items that a correct end records.
pub(super) fn item_count(end: &[u8]) -> u64 {
    u64::from_le_bytes(field(end, 0))
}
