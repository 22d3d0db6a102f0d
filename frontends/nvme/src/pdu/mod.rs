//! PDUs of a connection (TCP transport specification, 3.6).
//!
//! ```text
//! +0 kind 1   +1 flags 1   +2 header's length 1   +3 data's offset 1   +4 total length 4
//! +8 specific to the kind, up to the header's length
//!    header digest 4, if negotiated; padding; data; data digest 4, if negotiated
//! ```
//!
//! A peer's lengths and offsets are checked against the kind's limits before the remainder is waited for, so the
//! longest PDU bounds a receiver's buffer.

mod digest;
mod fatal;
mod framing;
mod header;
mod writer;

use crate::{Command, Completion};

pub use digest::Digests;
pub use fatal::{Fatal, FatalCause};
pub use framing::{Framing, Side};
pub use writer::{Sink, Writer};

/// Initialize Connection Request: a host's first PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialRequest {
    /// The version of the format, which is 0.
    pub version: u16,
    /// The alignment of data that the host requires, in dwords, minus one: at most 31.
    pub alignment: u8,
    /// The digests that it requests.
    pub digests: Digests,
    /// Maximum number of outstanding R2T for one command, minus one.
    pub ready_count_max: u32,
}

/// Initialize Connection Response: a controller's first PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialResponse {
    /// The version of the format, which is 0.
    pub version: u16,
    /// The alignment of data that the controller requires, in dwords, minus one: at most 31.
    pub alignment: u8,
    /// The digests that are used.
    pub digests: Digests,
    /// Maximum data of one PDU to the controller, in bytes.
    pub data_bytes_max: u32,
}

/// A part of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// The command's identifier.
    pub id: u16,
    /// To the controller: the tag of the R2T that requested it.
    pub tag: u16,
    /// Its offset in the command's data.
    pub offset: u32,
    /// True for the last part of the request.
    pub is_last: bool,
    /// To the host: whether it also stands for the completion.
    pub is_success: bool,
    /// The data.
    pub bytes: &'a [u8],
}

/// Ready to Transfer: the controller requests a part of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The command's identifier.
    pub id: u16,
    /// The tag for the data.
    pub tag: u16,
    /// The part's offset in the command's data.
    pub offset: u32,
    /// Its length.
    pub len_bytes: u32,
}

/// A complete PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pdu<'a> {
    /// The host's first.
    InitialRequest(InitialRequest),
    /// The controller's first.
    InitialResponse(InitialResponse),
    /// The peer ends the connection.
    Terminate {
        /// The cause, as a number because it may be unknown here.
        cause: u16,
        /// Details; for some causes, the offset of the invalid header field.
        information: u32,
    },
    /// A command, with the data in its capsule.
    Command(&'a Command, &'a [u8]),
    /// A command whose data has a wrong digest.
    CorruptCommand(&'a Command),
    /// The outcome of a command.
    Completion(Completion),
    /// A part of a command's data.
    Data(Data<'a>),
    /// A part of a command's data with a wrong digest. Header and length are those that the peer sent.
    CorruptData(Data<'a>),
    /// The controller is ready for data.
    Ready(Ready),
}
