//! One string in the format of Redis' RDB files, with the version and checksum that DUMP appends.
//!
//! ```text
//! 0 | string | version, 2 bytes | CRC-64 of all before, 8 bytes
//! ```

use crate::errors::FixedError;

/// The version that Redis 7.0 writes.
const VERSION: u16 = 10;
/// The newest version that is read, of Redis 7.4: the encoding of strings has not changed since 7.0.
const VERSION_MAX: u16 = 12;
const TYPE_STRING: u8 = 0;
const FOOTER_BYTES: usize = 10;

/// Computes Redis' CRC-64: the polynomial of Jones, reflected, without inversions.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let (mut crc, mut bit) = (index as u64, 0);
            while bit < 8 {
                crc = if crc & 1 != 0 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
                bit += 1;
            }
            table[index] = crc;
            index += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8)
}

/// Encodes a value for DUMP.
pub(super) fn dump(value: &[u8]) -> Vec<u8> {
    let mut dumped = Vec::with_capacity(value.len() + 32);
    dumped.push(TYPE_STRING);
    match value.len() {
        len @ 0..64 => dumped.push(len as u8),
        len @ 64..16_384 => dumped.extend_from_slice(&(0x4000 | len as u16).to_be_bytes()),
        len => {
            dumped.push(0x80);
            dumped.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    dumped.extend_from_slice(value);
    sealed(dumped)
}

/// Appends version and checksum to `dumped`.
pub(super) fn sealed(mut dumped: Vec<u8>) -> Vec<u8> {
    dumped.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(&dumped);
    dumped.extend_from_slice(&crc.to_le_bytes());
    dumped
}

/// Decodes a dumped value.
///
/// # Errors
/// A payload that is too short, damaged, or of a newer version; a type other than string; a string longer than
/// `bytes_max`.
pub(super) fn restore(dumped: &[u8], bytes_max: usize) -> Result<Vec<u8>, FixedError> {
    let body = unsealed(dumped).ok_or(FixedError::BadDump)?;
    let [TYPE_STRING, string @ ..] = body else { return Err(FixedError::BadFormat) };
    let (value, rest) = Reader { rest: string, bytes_max }.string().ok_or(FixedError::BadFormat)?;
    if rest.is_empty() && value.len() <= bytes_max { Ok(value) } else { Err(FixedError::BadFormat) }
}

/// Returns the part before version and checksum, if both are valid.
fn unsealed(dumped: &[u8]) -> Option<&[u8]> {
    let (body, footer) = dumped.split_at_checked(dumped.len().checked_sub(FOOTER_BYTES)?)?;
    let version = u16::from_le_bytes(footer[..2].try_into().ok()?);
    let crc = u64::from_le_bytes(footer[2..].try_into().ok()?);
    (version <= VERSION_MAX && crc == crc64(&dumped[..dumped.len() - size_of::<u64>()])).then_some(body)
}

struct Reader<'a> {
    rest: &'a [u8],
    bytes_max: usize,
}

impl<'a> Reader<'a> {
    fn string(mut self) -> Option<(Vec<u8>, &'a [u8])> {
        let first = *self.rest.first()?;
        let value = match first {
            0xC0 => self.skip(1).integer::<1>(|bytes| i8::from_le_bytes(bytes).into())?,
            0xC1 => self.skip(1).integer::<2>(|bytes| i16::from_le_bytes(bytes).into())?,
            0xC2 => self.skip(1).integer::<4>(|bytes| i32::from_le_bytes(bytes).into())?,
            0xC3 => self.skip(1).compressed()?,
            _ => {
                let len_bytes = self.length()?;
                self.take(len_bytes)?.to_vec()
            }
        };
        Some((value, self.rest))
    }

    fn skip(&mut self, count: usize) -> &mut Self {
        self.rest = &self.rest[count..];
        self
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn integer<const N: usize>(&mut self, number: fn([u8; N]) -> i64) -> Option<Vec<u8>> {
        let bytes = self.take(N)?.try_into().ok()?;
        Some(number(bytes).to_string().into_bytes())
    }

    fn length(&mut self) -> Option<usize> {
        let first = self.take(1)?[0];
        match first >> 6 {
            0 => Some(usize::from(first)),
            1 => Some(usize::from(first & 0x3F) << 8 | usize::from(self.take(1)?[0])),
            _ if first == 0x80 => Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?) as usize),
            _ if first == 0x81 => u64::from_be_bytes(self.take(8)?.try_into().ok()?).try_into().ok(),
            _ => None,
        }
    }

    fn compressed(&mut self) -> Option<Vec<u8>> {
        let (compressed_bytes, len_bytes) = (self.length()?, self.length()?);
        if len_bytes > self.bytes_max {
            return None;
        }
        let value = decompress(self.take(compressed_bytes)?, len_bytes)?;
        (value.len() == len_bytes).then_some(value)
    }
}

/// Decompresses LZF: runs of literal bytes, and copies of earlier output. `None` if the input is malformed, or longer
/// than announced.
fn decompress(mut input: &[u8], len_bytes: usize) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    while let [control, rest @ ..] = input {
        input = rest;
        let mut take = || input.split_first().map(|(byte, rest)| (input = rest, *byte).1);
        if *control < 32 {
            for _ in 0..=*control {
                output.push(take()?);
            }
        } else {
            let mut length = usize::from(control >> 5);
            if length == 7 {
                length += usize::from(take()?);
            }
            let distance = usize::from(control & 0x1F) << 8 | usize::from(take()?);
            let from = output.len().checked_sub(distance + 1)?;
            (from..from + length + 2).for_each(|at| output.push(output[at]));
        }
        if output.len() > len_bytes {
            return None;
        }
    }
    Some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn dumped_value_is_restored() {
        for len in [0, 1, 63, 64, 16_383, 16_384, 100_000] {
            let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut dumped = dump(&value);
            assert_eq!(restore(&dumped, 1 << 20), Ok(value));
            let at = dumped.len() / 2;
            dumped[at] ^= 1;
            assert_eq!(restore(&dumped, 1 << 20), Err(FixedError::BadDump));
        }
        assert_eq!(restore(&dump(&[7; 100]), 99), Err(FixedError::BadFormat));
        assert_eq!(restore(b"", 99), Err(FixedError::BadDump));
    }

    #[test]
    fn redis_dump_is_restored() {
        let restored = |body: &[u8]| restore(&sealed(body.to_vec()), 1000).ok();
        assert_eq!(restored(b"\x00\xC0\x7B").as_deref(), Some(&b"123"[..]));
        assert_eq!(restored(b"\x00\xC1\x39\x30").as_deref(), Some(&b"12345"[..]));
        assert_eq!(restored(b"\x00\xC2\xFF\xFF\xFF\xFF").as_deref(), Some(&b"-1"[..]));
        // One literal, then 99 copies of it: 7 + 90, and 2 that every copy has.
        assert_eq!(restored(b"\x00\xC3\x05\x40\x64\x00a\xE0\x5A\x00"), Some(vec![b'a'; 100]));
        assert_eq!(restored(b"\x00\xC3\x05\x40\x64\x00a\xE0\x5A\x01"), None);
        assert_eq!(restored(b"\x01\x00"), None);
    }

    /// A string of each version, encoded by Redis.
    #[test]
    fn dumps_of_later_versions_are_restored() {
        let of_version = |version: u16| {
            let mut dumped = [&b"\x00\x03abc"[..], &version.to_le_bytes()].concat();
            dumped.extend_from_slice(&crc64(&dumped).to_le_bytes());
            restore(&dumped, 1000)
        };
        for version in [1, 9, 10, 11, 12] {
            assert_eq!(of_version(version).as_deref(), Ok(&b"abc"[..]), "{version}");
        }
        assert_eq!(of_version(13), Err(FixedError::BadDump));
        let without_checksum = [&b"\x00\x03abc\x0a\x00"[..], &[0; 8]].concat();
        assert_eq!(restore(&without_checksum, 1000), Err(FixedError::BadDump));
    }
}
