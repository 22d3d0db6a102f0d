//! NVMe over TCP with the Key Value command set, as both ends of a connection need it: a codec, without I/O.
//!
//! - `pdu`: what travels on a connection. A [`Framing`] finds PDUs in the bytes that have arrived and checks lengths, places and
//!   digests before anything of them is believed; a [`Writer`] appends PDUs to bytes to be sent.
//! - `command`, `completion`, `status`: a submission queue entry, a completion queue entry and what it says.
//! - `fabrics`, `admin`, `kv`: commands by what they ask for, each read from a [`Command`] and written to one.
//! - `dhchap`: messages of authentication, and what secrets make of them.
//! - `identify`, `logs`, `discovery`: the pages that a controller answers with.
//! - `listing`: what List and Range answer with.
//!
//! Numbers are little-endian everywhere. Nothing here allocates by a length that a peer names, and nothing panics, whatever a peer
//! sends.
//!
//! Section numbers in comments are those of the NVM Express Base Specification 2.0, the TCP Transport Specification 1.0 and the Key
//! Value Command Set Specification 1.0.
#![forbid(unsafe_code)]

mod admin;
mod bytes;
mod command;
mod completion;
pub mod dhchap;
mod discovery;
mod fabrics;
mod identify;
mod kv;
mod listing;
mod logs;
mod pdu;
mod properties;
mod status;

pub use admin::{Admin, Feature, LogPage};
pub use command::{Command, Sgl};
pub use completion::Completion;
pub use discovery::{DiscoveryEntry, DiscoveryLog};
pub use fabrics::{AUTHENTICATION_ASKED, Connect, ConnectData, Fabrics, nqn_of};
pub use identify::{ControllerKind, IdentifyController, KvNamespace, active_namespaces, independent_namespace};
pub use identify::{command_sets, namespace_descriptors};
pub use kv::{Key, Kv, StoreIf};
pub use listing::{Items, Keys, ListWriter, RangeWriter};
pub use logs::{Health, effects, firmware, supported_features, supported_logs};
pub use pdu::{
    Data, Digests, Fatal, FatalCause, Framing, InitialRequest, InitialResponse, Pdu, Ready, Side, Sink, Writer,
};
pub use properties::{Capabilities, Configuration, Property, ShutdownState, StatusRegister};
pub use status::Status;

/// The port that is assigned to NVMe over TCP.
pub const PORT: u16 = 4420;
/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The version that controllers here speak: 2.0, which has the Key Value command set.
pub const VERSION: u32 = 0x0002_0000;
/// The command set identifier of the Key Value command set.
pub const KV_COMMAND_SET: u8 = 1;
/// Bytes of a page of Identify.
pub const IDENTIFY_BYTES: usize = 4096;
