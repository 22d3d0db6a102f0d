//! A submission queue entry.
//!
//! ```text
//!  +0 opcode 1   +1 flags 1 (7:6 how data is described)   +2 identifier 2   +4 namespace 4
//!  +8 dwords 2 to 5
//! +24 data: address 8, length 4, 3 bytes, kind 1
//! +40 dwords 10 to 15
//! ```

use std::fmt;

use ref_cast::RefCast;

use crate::bytes::{put, u8_at, u16_at, u32_at, u64_at};

/// The data descriptor of a command on this transport (base specification, 4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sgl {
    /// In the capsule, at this offset.
    InCapsule {
        /// The offset after the command.
        offset: u64,
        /// The length.
        len_bytes: u32,
    },
    /// In separate PDUs, to or from the host.
    Transport {
        /// The length.
        len_bytes: u32,
    },
    /// Any other kind, which the transport does not support.
    Other,
}

const IN_CAPSULE: u8 = 0x01;
const TRANSPORT: u8 = 0x5a;
/// Data is described by one SGL descriptor.
const BY_SGL: u8 = 0x40;

/// A command in its wire format.
#[derive(Clone, Copy, PartialEq, Eq, RefCast)]
#[repr(transparent)]
pub struct Command(pub [u8; Command::BYTES]);

impl Command {
    /// The length of an entry.
    pub const BYTES: usize = 64;

    /// Creates a command without data.
    #[must_use]
    pub fn new(opcode: u8, id: u16, namespace: u32) -> Command {
        let mut command = Command([0; Command::BYTES]);
        command.0[0] = opcode;
        command.0[1] = BY_SGL;
        put(&mut command.0, 2, &id.to_le_bytes());
        put(&mut command.0, 4, &namespace.to_le_bytes());
        command.with_sgl(Sgl::Transport { len_bytes: 0 })
    }

    /// Returns the command with this data descriptor.
    #[must_use]
    pub fn with_sgl(mut self, sgl: Sgl) -> Command {
        let (address, len_bytes, kind) = match sgl {
            Sgl::InCapsule { offset, len_bytes } => (offset, len_bytes, IN_CAPSULE),
            Sgl::Transport { len_bytes } => (0, len_bytes, TRANSPORT),
            Sgl::Other => (0, 0, 0xff),
        };
        put(&mut self.0, 24, &address.to_le_bytes());
        put(&mut self.0, 32, &len_bytes.to_le_bytes());
        self.0[39] = kind;
        self
    }

    /// Returns the command with this dword; dwords 6 to 9 are the data descriptor's.
    #[must_use]
    pub fn with_dword(mut self, number: usize, value: u32) -> Command {
        put(&mut self.0, 4 * number, &value.to_le_bytes());
        self
    }

    /// Returns the command with another identifier.
    #[must_use]
    pub fn with_id(mut self, id: u16) -> Command {
        put(&mut self.0, 2, &id.to_le_bytes());
        self
    }

    /// Returns the opcode within its command set.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Returns whether it is one of two fused commands, which no controller here supports.
    #[must_use]
    pub fn is_fused(&self) -> bool {
        self.0[1] & 0x03 != 0
    }

    /// Returns the identifier, which its completion repeats.
    #[must_use]
    pub fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// Returns its namespace.
    #[must_use]
    pub fn namespace(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// Returns a dword of the command.
    #[must_use]
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, 4 * number)
    }

    /// Returns its data descriptor.
    #[must_use]
    pub fn sgl(&self) -> Sgl {
        let len_bytes = u32_at(&self.0, 32);
        match u8_at(&self.0, 39) {
            IN_CAPSULE => Sgl::InCapsule { offset: u64_at(&self.0, 24), len_bytes },
            TRANSPORT => Sgl::Transport { len_bytes },
            _ => Sgl::Other,
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {:#04x}, id {}, {:?}", self.opcode(), self.id(), self.sgl())
    }
}
