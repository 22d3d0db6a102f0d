//! Fabrics commands: opcode 7Fh, with a type instead of the namespace (base specification, 6).

use crate::bytes::{bytes_at, put, put_text, text_of, u8_at, u16_at, u32_at, u64_at};
use crate::{Command, Status};

const PROPERTY_SET: u8 = 0x00;
const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
const AUTH_SEND: u8 = 0x05;
const AUTH_RECEIVE: u8 = 0x06;
/// The security protocol of NVMe's own authentication, and its specific part (base specification, 6.1).
const AUTH_PROTOCOL: [u8; 3] = [1, 1, 0xe9];
/// The length of a name's field, including the NUL.
const NQN_FIELD_BYTES: usize = 256;
/// The longest name.
const NQN_BYTES_MAX: usize = 223;

/// The bits in dword 0 of Connect's result that require authentication, in addition to the controller's number.
pub const AUTHENTICATION_ASKED: u64 = 1 << 17;

/// The queue parameters of Connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connect {
    /// The queue: 0 is the admin queue.
    pub queue: u16,
    /// Its number of entries, minus one.
    pub queue_entries: u16,
    /// The keep-alive time in ms, for the admin queue; 0 means unlimited.
    pub keep_alive_ms: u32,
    /// Bit 2: the host does not need the queue head in completions.
    pub attributes: u8,
}

/// A fabrics command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fabrics {
    /// Makes a connection a queue of a controller. Its data is [`ConnectData`].
    Connect(Connect),
    /// Writes a property.
    PropertySet {
        /// The property's offset.
        offset: u32,
        /// Its length.
        len_bytes: usize,
        /// The value.
        value: u64,
    },
    /// Reads a property.
    PropertyGet {
        /// The property's offset.
        offset: u32,
        /// Its length.
        len_bytes: usize,
    },
    /// Sends an authentication message to the controller.
    AuthSend {
        /// Its length.
        len_bytes: u32,
    },
    /// Requests an authentication message from the controller.
    AuthReceive {
        /// The buffer size.
        len_bytes: u32,
    },
}

impl Fabrics {
    /// The opcode of all fabrics commands.
    pub const OPCODE: u8 = 0x7f;

    /// Decodes `command`.
    ///
    /// # Errors
    /// The status for its completion.
    pub fn of(command: &Command) -> Result<Fabrics, Status> {
        let bytes = &command.0;
        let property_bytes = || if u8_at(bytes, 40) & 7 == 1 { 8 } else { 4 };
        match u8_at(bytes, 4) {
            CONNECT if u16_at(bytes, 40) != 0 => Err(Status::CONNECT_FORMAT),
            CONNECT => Ok(Fabrics::Connect(Connect {
                queue: u16_at(bytes, 42),
                queue_entries: u16_at(bytes, 44),
                attributes: u8_at(bytes, 46),
                keep_alive_ms: u32_at(bytes, 48),
            })),
            PROPERTY_SET => Ok(Fabrics::PropertySet {
                offset: u32_at(bytes, 44),
                len_bytes: property_bytes(),
                value: u64_at(bytes, 48),
            }),
            PROPERTY_GET => Ok(Fabrics::PropertyGet { offset: u32_at(bytes, 44), len_bytes: property_bytes() }),
            kind @ (AUTH_SEND | AUTH_RECEIVE) => {
                if bytes_at(bytes, 41) != AUTH_PROTOCOL {
                    return Err(Status::INVALID_FIELD);
                }
                let len_bytes = u32_at(bytes, 44);
                Ok(if kind == AUTH_SEND { Fabrics::AuthSend { len_bytes } } else { Fabrics::AuthReceive { len_bytes } })
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Encodes the command.
    #[must_use]
    pub fn command(&self, id: u16) -> Command {
        let mut command = Command::new(Fabrics::OPCODE, id, 0);
        let bytes = &mut command.0;
        let put_property = |bytes: &mut [u8], kind, offset: u32, len_bytes| {
            bytes[4] = kind;
            bytes[40] = u8::from(len_bytes == 8);
            put(bytes, 44, &offset.to_le_bytes());
        };
        match *self {
            Fabrics::Connect(connect) => {
                bytes[4] = CONNECT;
                put(bytes, 42, &connect.queue.to_le_bytes());
                put(bytes, 44, &connect.queue_entries.to_le_bytes());
                bytes[46] = connect.attributes;
                put(bytes, 48, &connect.keep_alive_ms.to_le_bytes());
            }
            Fabrics::PropertySet { offset, len_bytes, value } => {
                put_property(bytes, PROPERTY_SET, offset, len_bytes);
                put(bytes, 48, &value.to_le_bytes());
            }
            Fabrics::PropertyGet { offset, len_bytes } => put_property(bytes, PROPERTY_GET, offset, len_bytes),
            Fabrics::AuthSend { len_bytes } | Fabrics::AuthReceive { len_bytes } => {
                let is_send = matches!(self, Fabrics::AuthSend { .. });
                bytes[4] = if is_send { AUTH_SEND } else { AUTH_RECEIVE };
                put(bytes, 41, &AUTH_PROTOCOL);
                put(bytes, 44, &len_bytes.to_le_bytes());
            }
        }
        command
    }
}

/// A connecting host, and its destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectData {
    /// The host identifier.
    pub host_id: [u8; 16],
    /// The controller: FFFFh requests a new one.
    pub controller: u16,
    /// The subsystem's name.
    pub subsystem: String,
    /// The host's name.
    pub host: String,
}

impl ConnectData {
    /// Its length.
    pub const BYTES: usize = 1024;
    /// The controller number that requests a new controller.
    pub const ANY_CONTROLLER: u16 = 0xffff;

    /// Decodes a host's data.
    ///
    /// # Errors
    /// The status for the completion of Connect.
    pub fn decode(bytes: &[u8]) -> Result<ConnectData, Status> {
        if bytes.len() != ConnectData::BYTES {
            return Err(Status::CONNECT_INVALID);
        }
        Ok(ConnectData {
            host_id: bytes_at(bytes, 0),
            controller: u16_at(bytes, 16),
            subsystem: nqn_of(&bytes[256..512]).ok_or(Status::CONNECT_INVALID)?,
            host: nqn_of(&bytes[512..768]).ok_or(Status::CONNECT_INVALID)?,
        })
    }

    /// Encodes the data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ConnectData::BYTES];
        put(&mut bytes, 0, &self.host_id);
        put(&mut bytes, 16, &self.controller.to_le_bytes());
        put_text(&mut bytes, 256, NQN_FIELD_BYTES - 1, &self.subsystem, 0);
        put_text(&mut bytes, 512, NQN_FIELD_BYTES - 1, &self.host, 0);
        bytes
    }
}

/// Returns the name in a field, if it is valid: nonempty printable ASCII, followed by a NUL.
#[must_use]
pub fn nqn_of(field: &[u8]) -> Option<String> {
    let len = field.iter().position(|byte| *byte == 0)?;
    let is_name = (1..=NQN_BYTES_MAX).contains(&len) && field[..len].iter().all(u8::is_ascii_graphic);
    is_name.then(|| text_of(field))
}
