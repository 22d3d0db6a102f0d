//! Reads the basic parts of the format: bytes, lengths and strings.

use std::io::{ErrorKind, Read};

use crate::crc::crc64;
use crate::error::Error;
use crate::lzf;

/// A length, or the encoding that stands in its place.
pub(crate) enum Length {
    Plain(u64),
    /// A string in this special encoding.
    Special(u8),
}

const INT_8: u8 = 0;
const INT_16: u8 = 1;
const INT_32: u8 = 2;
const COMPRESSED: u8 = 3;

/// The bytes of a payload or a file.
pub(crate) struct Input<R> {
    source: R,
    offset: u64,
    /// Of all bytes so far, unless the caller compares it separately.
    crc: Option<u64>,
    string_bytes_max: u64,
    /// The first string that was too long and was read over.
    too_long: Option<Error>,
}

/// The size of the pieces in which bytes are read over.
const PIECE_BYTES: usize = 16 << 10;

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R, has_crc: bool, string_bytes_max: u64) -> Input<R> {
        Input { source, offset: 0, crc: has_crc.then_some(0), string_bytes_max, too_long: None }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the checksum of all bytes so far.
    pub(crate) fn crc(&self) -> u64 {
        self.crc.unwrap_or(0)
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { offset: self.offset, what }
    }

    pub(crate) fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported { offset: self.offset, what }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.crc = self.crc.map(|crc| crc64(crc, bytes));
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (mut bytes, mut read_bytes) = ([0; N], 0);
        while read_bytes < N {
            match self.source.read(&mut bytes[read_bytes..]) {
                Ok(0) => return Err(Error::CutOff { offset: self.offset + read_bytes as u64 }),
                Ok(count) => read_bytes += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.note(&bytes);
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    /// Reads so many bytes. Memory grows with those that are there. Too many are read over, and none returned.
    pub(crate) fn bytes(&mut self, len_bytes: u64) -> Result<Vec<u8>, Error> {
        if self.is_too_long(len_bytes) {
            return self.skip(len_bytes).map(|()| Vec::new());
        }
        let mut bytes = Vec::new();
        self.source.by_ref().take(len_bytes).read_to_end(&mut bytes)?;
        self.note(&bytes);
        if (bytes.len() as u64) < len_bytes { Err(Error::CutOff { offset: self.offset }) } else { Ok(bytes) }
    }

    fn is_too_long(&mut self, len_bytes: u64) -> bool {
        let (offset, len_bytes_max) = (self.offset, self.string_bytes_max);
        if len_bytes > len_bytes_max {
            self.too_long.get_or_insert(Error::TooLong { offset, len_bytes, len_bytes_max });
        }
        len_bytes > len_bytes_max
    }

    /// Returns the error for the first string since the last call that was too long, and was read over.
    pub(crate) fn too_long(&mut self) -> Option<Error> {
        self.too_long.take()
    }

    fn skip(&mut self, mut len_bytes: u64) -> Result<(), Error> {
        let mut piece = [0; PIECE_BYTES];
        while len_bytes > 0 {
            let wanted_bytes = len_bytes.min(PIECE_BYTES as u64) as usize;
            match self.source.read(&mut piece[..wanted_bytes]) {
                Ok(0) => return Err(Error::CutOff { offset: self.offset }),
                Ok(count) => {
                    self.note(&piece[..count]);
                    len_bytes -= count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(crate) fn length_or_special(&mut self) -> Result<Length, Error> {
        let first = self.byte()?;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(first.into()),
            (1, _) => Length::Plain(u64::from(first & 0x3F) << 8 | u64::from(self.byte()?)),
            (3, _) => Length::Special(first & 0x3F),
            (_, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ => return Err(self.malformed("a length in an unknown form")),
        })
    }

    pub(crate) fn length(&mut self) -> Result<u64, Error> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(self.malformed("a string instead of a length")),
        }
    }

    /// Reads over so many lengths.
    pub(crate) fn lengths(&mut self, count: usize) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.length().map(drop))
    }

    pub(crate) fn string(&mut self) -> Result<Vec<u8>, Error> {
        let number = match self.length_or_special()? {
            Length::Plain(len_bytes) => return self.bytes(len_bytes),
            Length::Special(INT_8) => i8::from_le_bytes(self.array()?).into(),
            Length::Special(INT_16) => i16::from_le_bytes(self.array()?).into(),
            Length::Special(INT_32) => i32::from_le_bytes(self.array()?),
            Length::Special(COMPRESSED) => return self.compressed(),
            Length::Special(_) => return Err(self.malformed("a string in an unknown encoding")),
        };
        Ok(number.to_string().into_bytes())
    }

    fn compressed(&mut self) -> Result<Vec<u8>, Error> {
        let (compressed_bytes, len_bytes) = (self.length()?, self.length()?);
        if self.is_too_long(len_bytes) {
            return self.skip(compressed_bytes).map(|()| Vec::new());
        }
        let compressed = self.bytes(compressed_bytes)?;
        lzf::decompress(&compressed, len_bytes).ok_or_else(|| self.malformed("a damaged compressed string"))
    }
}
