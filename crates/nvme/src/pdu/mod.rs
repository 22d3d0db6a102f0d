//! What travels on a connection (TCP transport specification, 3.6).
//!
//! ```text
//! +0 kind 1   +1 flags 1   +2 header's length 1   +3 where data begins 1   +4 length of all 4
//! +8 the kind's own, up to the header's length
//!    header digest 4, if it was agreed on; padding; data; data digest 4, if it was agreed on
//! ```
//!
//! What a peer says of lengths and places is checked against what its kind allows before the rest is waited for, so the longest
//! PDU bounds what a receiver keeps.

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

/// Initialize Connection Request: a host's first words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialRequest {
    /// The version of the format, which is 0.
    pub version: u16,
    /// The alignment of data that the host wants, in dwords, less one: at most 31.
    pub alignment: u8,
    /// The digests that it wants.
    pub digests: Digests,
    /// How many R2T it takes for one command at a time, less one.
    pub ready_count_max: u32,
}

/// Initialize Connection Response: a controller's first words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialResponse {
    /// The version of the format, which is 0.
    pub version: u16,
    /// The alignment of data that the controller wants, in dwords, less one: at most 31.
    pub alignment: u8,
    /// The digests that are used.
    pub digests: Digests,
    /// The most data that one PDU may bring to the controller, in bytes.
    pub data_bytes_max: u32,
}

/// A part of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// The command's identifier.
    pub id: u16,
    /// To the controller: the tag of the R2T that asked for it.
    pub tag: u16,
    /// Where in the command's data it belongs.
    pub offset: u32,
    /// It is the last of what was asked for.
    pub is_last: bool,
    /// To the host: it stands for the completion as well.
    pub is_success: bool,
    /// The data.
    pub bytes: &'a [u8],
}

/// Ready to Transfer: the controller asks for a part of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The command's identifier.
    pub id: u16,
    /// What the data is to have as tag.
    pub tag: u16,
    /// Where in the command's data the part begins.
    pub offset: u32,
    /// How long it is.
    pub len_bytes: u32,
}

/// A PDU that arrived whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pdu<'a> {
    /// The host's first.
    InitialRequest(InitialRequest),
    /// The controller's first.
    InitialResponse(InitialResponse),
    /// The peer ends the connection.
    Terminate {
        /// Its reason: a number, as it may be one that is not known here.
        cause: u16,
        /// More of it; where in the header the fault lies, for some.
        information: u32,
    },
    /// A command, with the data that its capsule has.
    Command(&'a Command, &'a [u8]),
    /// A command whose data does not have its digest.
    SpoiltCommand(&'a Command),
    /// What became of a command.
    Completion(Completion),
    /// A part of a command's data.
    Data(Data<'a>),
    /// A part of a command's data that does not have its digest. Header and length are those that the peer sent.
    SpoiltData(Data<'a>),
    /// The controller is ready for data.
    Ready(Ready),
}
