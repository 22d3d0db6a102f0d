//! Writes values and `dump.rdb` files.

use std::io::{self, Write};

use crate::crc::crc64;
use crate::file::END;
use crate::{Kind, MAGIC, VERSION};

const AUXILIARY: u8 = 0xFA;
const EXPIRY_MS: u8 = 0xFC;
const DATABASE: u8 = 0xFE;

/// Appends a length.
pub fn put_length(out: &mut Vec<u8>, length: u64) {
    match (u32::try_from(length), length) {
        (_, 0..64) => out.push(length as u8),
        (_, 64..16_384) => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        (Ok(length), _) => {
            out.push(0x80);
            out.extend_from_slice(&length.to_be_bytes());
        }
        (Err(_), _) => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends a string: a value, an element, a field or a member.
pub fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_length(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Appends a score, after its member.
pub fn put_score(out: &mut Vec<u8>, score: f64) {
    out.extend_from_slice(&score.to_le_bytes());
}

/// Writes a file.
pub struct FileWriter<W> {
    out: W,
    crc: u64,
    db: Option<u64>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file, with names and values that say where it comes from.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, auxiliary: &[(&str, &str)]) -> io::Result<FileWriter<W>> {
        let mut writer = FileWriter { out, crc: 0, db: None };
        let mut begin = MAGIC.to_vec();
        begin.extend_from_slice(format!("{VERSION:04}").as_bytes());
        for (name, value) in auxiliary {
            begin.push(AUXILIARY);
            put_string(&mut begin, name.as_bytes());
            put_string(&mut begin, value.as_bytes());
        }
        writer.write(&begin)?;
        Ok(writer)
    }

    /// Begins a key, whose value follows ([`FileWriter::write`]): a string, or the number of elements and the elements.
    ///
    /// # Errors
    /// Those of the output.
    pub fn begin(&mut self, db: u64, key: &[u8], kind: Kind, expires_at_ms: Option<u64>) -> io::Result<()> {
        let mut begin = Vec::new();
        if self.db != Some(db) {
            self.db = Some(db);
            begin.push(DATABASE);
            put_length(&mut begin, db);
        }
        if let Some(ms) = expires_at_ms {
            begin.push(EXPIRY_MS);
            begin.extend_from_slice(&ms.to_le_bytes());
        }
        begin.push(kind.type_byte());
        put_string(&mut begin, key);
        self.write(&begin)
    }

    /// Writes bytes of a value.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc64(self.crc, bytes);
        self.out.write_all(bytes)
    }

    /// Writes the end, and returns the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.write(&[END])?;
        let crc = self.crc.to_le_bytes();
        self.out.write_all(&crc)?;
        Ok(self.out)
    }
}
