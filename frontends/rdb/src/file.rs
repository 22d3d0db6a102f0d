//! Reads `dump.rdb` files.

use std::io::Read;

use crate::error::Error;
use crate::input::Input;
use crate::{Kind, MAGIC, Part, VERSION_MAX, skip, value};

const VERSION_DIGITS: usize = 4;
/// Files of earlier versions have no checksum.
const CHECKED_VERSION_MIN: u32 = 5;
const SLOT_INFO: u8 = 0xF4;
const FUNCTIONS: u8 = 0xF5;
const FUNCTIONS_OF_CANDIDATES: u8 = 0xF6;
const MODULE_AUXILIARY: u8 = 0xF7;
const IDLE_TIME: u8 = 0xF8;
const FREQUENCY: u8 = 0xF9;
const AUXILIARY: u8 = 0xFA;
const SIZES: u8 = 0xFB;
const EXPIRY_MS: u8 = 0xFC;
const EXPIRY_S: u8 = 0xFD;
const DATABASE: u8 = 0xFE;
pub(crate) const END: u8 = 0xFF;

/// A key of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The number of its database.
    pub db: u64,
    /// The key.
    pub key: Vec<u8>,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: Option<u64>,
    value_type: u8,
}

impl Entry {
    /// Returns the type of the value; `None` if it can only be skipped ([`FileReader::skip`]).
    pub fn kind(&self) -> Option<Kind> {
        Kind::of_type(self.value_type)
    }

    /// Returns the type of a value that can only be skipped, with an article.
    pub fn unsupported(&self) -> &'static str {
        value::name_of(self.value_type)
    }
}

/// Returns an expiry as Redis understands it: -1 is none, and every other negative time has passed.
fn expiry_of(ms: i64) -> Option<u64> {
    if ms == -1 { None } else { Some(ms.max(0) as u64) }
}

/// Reads a file from its beginning to its end.
pub struct FileReader<R> {
    input: Input<R>,
    version: u32,
    db: u64,
    library_count: u64,
}

impl<R: Read> FileReader<R> {
    /// Reads the first line of a file. A string of it may have at most `string_bytes_max` bytes.
    ///
    /// # Errors
    /// [`Error::NoDump`], [`Error::Version`]
    pub fn new(source: R, string_bytes_max: u64) -> Result<FileReader<R>, Error> {
        let mut input = Input::new(source, true, string_bytes_max);
        let (magic, digits) = (input.array()?, input.array::<VERSION_DIGITS>()?);
        let version = str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        let version = version.filter(|_| magic == *MAGIC).ok_or(Error::NoDump)?;
        if version == 0 || version > VERSION_MAX.into() {
            return Err(Error::Version { version });
        }
        Ok(FileReader { input, version, db: 0, library_count: 0 })
    }

    /// Returns the number of bytes that were read.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Returns the number of libraries of functions that were left out.
    pub fn library_count(&self) -> u64 {
        self.library_count
    }

    /// Returns the next key, whose value must be read or skipped; `None` at the end of the file, whose checksum is then
    /// right.
    ///
    /// # Errors
    /// Those of the input; [`Error::Checksum`] at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        let (input, mut expires_at_ms) = (&mut self.input, None);
        loop {
            match input.byte()? {
                END => return self.end().map(|()| None),
                DATABASE => self.db = input.length()?,
                EXPIRY_MS => expires_at_ms = expiry_of(i64::from_le_bytes(input.array()?)),
                EXPIRY_S => expires_at_ms = expiry_of(i64::from(i32::from_le_bytes(input.array()?)) * 1000),
                SIZES => input.lengths(2)?,
                AUXILIARY => drop((input.string()?, input.string()?)),
                FREQUENCY => _ = input.byte()?,
                IDLE_TIME => input.lengths(1)?,
                SLOT_INFO => input.lengths(3)?,
                FUNCTIONS => {
                    input.string()?;
                    self.library_count += 1;
                }
                FUNCTIONS_OF_CANDIDATES => {
                    return Err(input.unsupported("functions of a release candidate of Redis 7.0"));
                }
                MODULE_AUXILIARY => {
                    // The id of the module; the form and the value of the time at which it was written.
                    input.lengths(3)?;
                    skip::module_parts(input)?;
                }
                value_type => {
                    let key = input.string()?;
                    input.too_long().map_or(Ok(()), Err)?;
                    return Ok(Some(Entry { db: self.db, key, expires_at_ms, value_type }));
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.version < CHECKED_VERSION_MIN {
            return Ok(());
        }
        let crc = self.input.crc();
        let stored = u64::from_le_bytes(self.input.array()?);
        // Redis writes 0 with `rdbchecksum no`.
        if stored == 0 || stored == crc { Ok(()) } else { Err(Error::Checksum) }
    }

    /// Calls `each` with the parts of the value of the last entry, and returns their number, which may be 0.
    ///
    /// # Errors
    /// Those of the input and of `each`. After [`Error::TooLong`], the value was read over, and the next entry can be
    /// read; `each` was called with an empty string instead.
    pub fn value<E: From<Error>>(&mut self, entry: &Entry, each: impl FnMut(Part) -> Result<(), E>) -> Result<u64, E> {
        let count = value::read(&mut self.input, entry.value_type, each)?;
        self.input.too_long().map_or(Ok(count), |error| Err(error.into()))
    }

    /// Reads over the value of the last entry.
    ///
    /// # Errors
    /// Those of the input; [`Error::Unsupported`] if the end of such a value cannot be found.
    pub fn skip(&mut self, entry: &Entry) -> Result<(), Error> {
        match entry.kind() {
            Some(_) => _ = value::read::<_, Error>(&mut self.input, entry.value_type, |_| Ok(()))?,
            None => skip::skip(&mut self.input, entry.value_type)?,
        }
        self.input.too_long();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry_after(opcode: u8, time: &[u8]) -> Option<u64> {
        let file = [b"REDIS0010", &[opcode][..], time, b"\x00\x01k\x01v\xFF", &[0; 8]].concat();
        let mut reader = FileReader::new(&file[..], 10).expect("a file");
        reader.next_entry().expect("it is read").expect("there is a key").expires_at_ms
    }

    #[test]
    fn entries_after_too_long_strings_are_read() {
        let file = [
            &b"REDIS0010"[..],
            b"\x00\x01a\x0Babcdefghijk",               // A string.
            b"\x00\x01b\xC3\x05\x0B\x00x\xE0\x01\x00", // A compressed string.
            b"\x01\x01c\x02\x0Babcdefghijk\x01x",      // A list.
            b"\x00\x01d\x0Babcdefghijk",
            b"\x00\x01e\x01v\xFF",
            &[0; 8],
        ];
        let file = file.concat();
        let mut reader = FileReader::new(&file[..], 10).expect("a file");
        let mut seen = Vec::new();
        while let Some(entry) = reader.next_entry().expect("it is read") {
            let is_too_long = match &entry.key[..] {
                b"d" => reader.skip(&entry).is_err(),
                _ => matches!(reader.value(&entry, |_| Ok(())), Err(Error::TooLong { len_bytes: 11, .. })),
            };
            seen.push((entry.key[0], is_too_long));
        }
        assert_eq!(seen, [(b'a', true), (b'b', true), (b'c', true), (b'd', false), (b'e', false)]);
        let mut reader = FileReader::new(&file[..20], 10).expect("a file");
        let entry = reader.next_entry().expect("it is read").expect("there is a key");
        let cut_off = reader.skip(&entry);
        assert!(matches!(cut_off, Err(Error::CutOff { offset: 20 })), "{cut_off:?}");
    }

    #[test]
    fn negative_times_have_passed() {
        for (ms, wanted) in [(5, Some(5)), (0, Some(0)), (-1, None), (-2, Some(0)), (i64::MIN, Some(0))] {
            assert_eq!(expiry_after(EXPIRY_MS, &i64::to_le_bytes(ms)), wanted, "{ms}");
        }
        for (seconds, wanted) in [(5, Some(5000)), (-1, Some(0)), (i32::MIN, Some(0))] {
            assert_eq!(expiry_after(EXPIRY_S, &i32::to_le_bytes(seconds)), wanted, "{seconds}");
        }
    }
}
