//! Commands of the Key Value command set.
//!
//! The key's bytes 0 to 7 are dwords 2 and 3, 8 to 15 dwords 14 and 15; dword 11 has the key's length in bits 7:0 and
//! options above them; dword 10 is the length of the value or of the host's buffer.

use std::fmt;

use crate::bytes::{put, u64_at};
use crate::{Command, Status};

const FLUSH: u8 = 0x00;
const STORE: u8 = 0x01;
const RETRIEVE: u8 = 0x02;
const LIST: u8 = 0x06;
const DELETE: u8 = 0x10;
const EXIST: u8 = 0x14;
/// A vendor-specific opcode with data to the host.
const RANGE: u8 = 0xc2;

const IF_THERE: u32 = 1;
const IF_ABSENT: u32 = 2;
/// The value must not be compressed; no device here compresses.
const UNCOMPRESSED: u32 = 4;

/// A key of the command set: up to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    bytes: [u8; Key::BYTES_MAX],
    len: u8,
}

impl Key {
    /// The longest key.
    pub const BYTES_MAX: usize = 16;

    /// Creates a key; `None` if it is too long.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Key> {
        let mut key = Key { bytes: [0; Key::BYTES_MAX], len: bytes.len().try_into().ok()? };
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(key)
    }

    /// Returns its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    #[inline]
    fn of(command: &Command) -> Result<Key, Status> {
        let len = command.dword(11) & 0xff;
        let own = match len {
            0 => 0,
            1..=16 => u128::MAX >> (u128::BITS - 8 * len),
            _ => return Err(Status::INVALID_FIELD),
        };
        let [first, last] = [8, 56].map(|at| u128::from(u64_at(&command.0, at)));
        // Bytes after the key's end are not part of it.
        Ok(Key { bytes: ((first | last << 64) & own).to_le_bytes(), len: len as u8 })
    }

    /// Decodes the key of a single-key command. An empty key returns `empty`, which differs from command to command
    /// (figure 4).
    #[inline]
    fn of_one(command: &Command, empty: Status) -> Result<Key, Status> {
        Key::of(command).and_then(|key| if key.len == 0 { Err(empty) } else { Ok(key) })
    }

    fn put(&self, mut command: Command) -> Command {
        put(&mut command.0, 8, &self.bytes[..8]);
        put(&mut command.0, 56, &self.bytes[8..]);
        let options = command.dword(11) & !0xff;
        command.with_dword(11, options | u32::from(self.len))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.as_bytes().escape_ascii())
    }
}

/// The condition for a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoreIf {
    /// Always.
    #[default]
    Always,
    /// If the key exists.
    There,
    /// If the key does not exist.
    Absent,
    /// Never: both conditions together. The status reports whether the key exists.
    Never,
}

impl StoreIf {
    fn of(options: u32) -> Result<StoreIf, Status> {
        match options & !UNCOMPRESSED {
            0 => Ok(StoreIf::Always),
            IF_THERE => Ok(StoreIf::There),
            IF_ABSENT => Ok(StoreIf::Absent),
            3 => Ok(StoreIf::Never),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn options(self) -> u32 {
        match self {
            StoreIf::Always => 0,
            StoreIf::There => IF_THERE,
            StoreIf::Absent => IF_ABSENT,
            StoreIf::Never => IF_THERE | IF_ABSENT,
        }
    }
}

/// A command of the command set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kv {
    /// Makes earlier stores durable.
    Flush,
    /// Stores a value.
    Store {
        /// The key.
        key: Key,
        /// The value's length.
        value_bytes: u32,
        /// The condition.
        when: StoreIf,
    },
    /// Reads a value, as much of it as the buffer holds. The result is the value's full length.
    Retrieve {
        /// The key.
        key: Key,
        /// The buffer size.
        buffer_bytes: u32,
    },
    /// Lists keys in order.
    List {
        /// The first key.
        from: Key,
        /// The buffer size.
        buffer_bytes: u32,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: Key,
    },
    /// Checks whether the key exists.
    Exist {
        /// The key.
        key: Key,
    },
    /// Reads keys and values in order, as many as the buffer holds; not a standard command. The result is 0 at the end,
    /// otherwise the buffer size that the next item needs.
    Range {
        /// The first key.
        from: Key,
        /// The buffer size.
        buffer_bytes: u32,
    },
}

impl Kv {
    /// Decodes `command`.
    ///
    /// # Errors
    /// The status for its completion.
    #[inline]
    pub fn of(command: &Command) -> Result<Kv, Status> {
        let len_bytes = command.dword(10);
        let options = command.dword(11) >> 8 & 0xff;
        if !matches!(command.opcode(), STORE | RETRIEVE | FLUSH) && options != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(match command.opcode() {
            FLUSH => Kv::Flush,
            STORE => {
                let when = StoreIf::of(options)?;
                Kv::Store { key: Key::of_one(command, Status::INVALID_KEY_SIZE)?, value_bytes: len_bytes, when }
            }
            // Option 0 requests a value in compressed form from a device that compresses. This one does not.
            RETRIEVE if options > 1 => return Err(Status::INVALID_FIELD),
            RETRIEVE => Kv::Retrieve { key: Key::of_one(command, Status::INVALID_KEY_SIZE)?, buffer_bytes: len_bytes },
            LIST => Kv::List { from: Key::of(command)?, buffer_bytes: len_bytes },
            DELETE => Kv::Delete { key: Key::of_one(command, Status::INVALID_FIELD)? },
            EXIST => Kv::Exist { key: Key::of_one(command, Status::INVALID_FIELD)? },
            RANGE => Kv::Range { from: Key::of(command)?, buffer_bytes: len_bytes },
            _ => return Err(Status::INVALID_OPCODE),
        })
    }

    /// Encodes the command, for this namespace.
    #[must_use]
    pub fn command(&self, id: u16, namespace: u32) -> Command {
        let new = |opcode| Command::new(opcode, id, namespace);
        match *self {
            Kv::Flush => new(FLUSH),
            Kv::Store { key, value_bytes, when } => {
                key.put(new(STORE).with_dword(10, value_bytes).with_dword(11, when.options() << 8))
            }
            Kv::Retrieve { key, buffer_bytes } => key.put(new(RETRIEVE).with_dword(10, buffer_bytes)),
            Kv::List { from, buffer_bytes } => from.put(new(LIST).with_dword(10, buffer_bytes)),
            Kv::Delete { key } => key.put(new(DELETE)),
            Kv::Exist { key } => key.put(new(EXIST)),
            Kv::Range { from, buffer_bytes } => from.put(new(RANGE).with_dword(10, buffer_bytes)),
        }
    }

    /// Returns the bytes of data to the controller.
    #[must_use]
    pub fn data_bytes(&self) -> u32 {
        if let Kv::Store { value_bytes, .. } = self { *value_bytes } else { 0 }
    }

    /// Returns the size of the buffer for data to the host.
    #[must_use]
    pub fn buffer_bytes(&self) -> u32 {
        match self {
            Kv::Retrieve { buffer_bytes, .. } | Kv::List { buffer_bytes, .. } | Kv::Range { buffer_bytes, .. } => {
                *buffer_bytes
            }
            _ => 0,
        }
    }
}
