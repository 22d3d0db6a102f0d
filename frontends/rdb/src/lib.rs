//! Redis' RDB format: values as `DUMP` and `RESTORE` exchange them, and `dump.rdb` files. A codec without a store.
//!
//! ```text
//! payload: type | value | version, 2 bytes | CRC-64 of all before, 8 bytes
//! file:    "REDIS" | version, 4 digits | { [database] [expiry] type | key | value } | FF | CRC-64 of all before
//! ```
//!
//! Values are written in the plain encodings that Redis since 5.0 reads, in version 10 of the format, which Redis 7.0
//! writes. All encodings of strings, lists, sets, hashes and sorted sets up to version 12 are read, that of Redis 7.4:
//! plain ones, those in which small collections are one string (`packed`), and compressed strings.
//!
//! A value is read part by part ([`Part`]), so a reader needs memory for one string and not for a collection. A length
//! in the input is never trusted: memory grows with the bytes that were read
//! (`docs/decisions/0119-move-data-in-redis-dump-format.md`).

mod crc;
mod error;
mod file;
mod input;
mod lzf;
mod packed;
mod payload;
mod skip;
mod value;
mod write;

pub use error::Error;
pub use file::{Entry, FileReader};
pub use payload::{Payload, sealed};
pub use write::{FileWriter, put_length, put_score, put_string};

/// The version that is written, of Redis 7.0.
pub const VERSION: u16 = 10;

/// The newest version that is read, of Redis 7.4.
pub const VERSION_MAX: u16 = 12;

/// The first bytes of a file.
pub const MAGIC: &[u8; 5] = b"REDIS";

/// A type of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One string.
    String,
    /// Strings in their order.
    List,
    /// Different strings.
    Set,
    /// Different fields with their values.
    Hash,
    /// Different members with their scores.
    SortedSet,
}

impl Kind {
    /// Returns the type of a value that begins with this byte; `None` for a stream, a value of a module, a hash with
    /// fields that expire, and an unknown type.
    pub fn of_type(byte: u8) -> Option<Kind> {
        Some(match byte {
            value::STRING => Kind::String,
            value::LIST | value::LIST_ZIPLIST | value::LIST_QUICKLIST | value::LIST_QUICKLIST_2 => Kind::List,
            value::SET | value::SET_INTSET | value::SET_LISTPACK => Kind::Set,
            value::HASH | value::HASH_ZIPMAP | value::HASH_ZIPLIST | value::HASH_LISTPACK => Kind::Hash,
            value::ZSET | value::ZSET_2 | value::ZSET_ZIPLIST | value::ZSET_LISTPACK => Kind::SortedSet,
            _ => return None,
        })
    }

    /// Returns the type byte that is written for it.
    pub fn type_byte(self) -> u8 {
        match self {
            Kind::String => value::STRING,
            Kind::List => value::LIST,
            Kind::Set => value::SET,
            Kind::Hash => value::HASH,
            Kind::SortedSet => value::ZSET_2,
        }
    }
}

/// A part of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// The whole value of a string.
    String(Vec<u8>),
    /// The next element of a list.
    Element(Vec<u8>),
    /// A member of a set.
    Member(Vec<u8>),
    /// A field of a hash, and its value.
    Field(Vec<u8>, Vec<u8>),
    /// A member of a sorted set, and its score, which is not NaN.
    Scored(Vec<u8>, f64),
}
