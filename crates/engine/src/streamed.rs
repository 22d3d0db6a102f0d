//! Items whose values are read from a source in pieces.

use std::io::{Chain, Cursor, Read, Take};

use items::layout::{HEADER_BYTES, Header};
use pmem::{Medium, Offset};

use crate::{Error, Expiry};

/// The length of the pieces in which a large value is read and written: a multiple of 16, within the L2 cache.
const PIECE_BYTES: usize = 64 * 1024;

/// An item whose value is read from a source in pieces.
pub struct Streamed<'a> {
    header: Header,
    /// The unread rest of expiry, key and value.
    body: Chain<Cursor<Vec<u8>>, Take<&'a mut dyn Read>>,
    unread_bytes: u64,
    piece: Vec<u8>,
}

impl<'a> Streamed<'a> {
    /// Reads the first piece, so that no space is reserved for a source that is empty.
    ///
    /// # Errors
    /// [`Error::Source`].
    pub fn start(
        key: &[u8],
        expiry: Expiry,
        value_bytes: u64,
        epoch: u32,
        source: &'a mut dyn Read,
    ) -> Result<Streamed<'a>, Error> {
        let header = Header::new(key.len(), value_bytes, expiry, epoch);
        let start = [&expiry.ms().to_le_bytes()[..header.key_start() - HEADER_BYTES], key].concat();
        let unread_bytes = start.len() as u64 + value_bytes;
        let body = Cursor::new(start).chain(source.take(value_bytes));
        let mut item = Streamed { header, body, unread_bytes, piece: Vec::new() };
        item.read_piece()?;
        Ok(item)
    }

    /// Returns the bytes that the item occupies.
    #[must_use]
    pub fn item_bytes(&self) -> u64 {
        self.header.item_bytes()
    }

    /// Writes the item and flushes it. The header comes last, because its checksum is known only then.
    ///
    /// # Errors
    /// [`Error::Source`].
    ///
    /// # Safety
    /// The caller reserved `item_bytes` at `at`.
    pub unsafe fn write<M: Medium>(mut self, medium: &M, at: Offset) -> Result<(), Error> {
        let (mut checksum, mut end) = (self.header.checksum_start(), at.plus(HEADER_BYTES as u64));
        while !self.piece.is_empty() {
            checksum = checksum.update(&self.piece);
            // SAFETY: the caller's promise; every piece but the last is a multiple of 16 bytes.
            unsafe { medium.stream(end, &[&self.piece]) };
            end = end.plus(self.piece.len() as u64);
            self.read_piece()?;
        }
        let header = Header { checksum: checksum.value(), ..self.header };
        // SAFETY: the caller's promise.
        unsafe { medium.stream(at, &[&header.to_bytes()]) };
        Ok(())
    }

    fn read_piece(&mut self) -> Result<(), Error> {
        self.piece.resize(self.unread_bytes.min(PIECE_BYTES as u64) as usize, 0);
        self.body.read_exact(&mut self.piece).map_err(Error::Source)?;
        self.unread_bytes -= self.piece.len() as u64;
        Ok(())
    }
}

const _: () = assert!(PIECE_BYTES.is_multiple_of(16) && HEADER_BYTES.is_multiple_of(16));
