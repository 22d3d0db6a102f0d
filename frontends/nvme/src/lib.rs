//! A codec for NVMe over TCP with the Key Value command set, for both ends of a connection, without I/O.
//!
//! - `pdu`: framing. A [`Framing`] splits received bytes into PDUs and validates lengths, offsets and digests first; a
//!   [`Writer`] appends PDUs to bytes to be sent.
//! - `command`, `completion`, `status`: a submission queue entry, a completion queue entry and its status.
//! - `fabrics`, `admin`, `kv`: typed commands, each decoded from a [`Command`] and encoded to one.
//! - `dhchap`: authentication messages, and the computation of responses.
//! - `identify`, `logs`, `discovery`: the pages that a controller returns.
//! - `listing`: the results of List and Range.
//!
//! Numbers are little-endian everywhere. No allocation depends on a length given by a peer, and nothing panics,
//! whatever a peer sends.
//!
//! Section numbers in comments are those of the NVM Express Base Specification 2.0, the TCP Transport Specification 1.0
//! and the Key Value Command Set Specification 1.0.
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

/// The port assigned to NVMe over TCP.
pub const PORT: u16 = 4420;
/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The version of controllers here: 2.0, which includes the Key Value command set.
pub const VERSION: u32 = 0x0002_0000;
/// The command set identifier of the Key Value command set.
pub const KV_COMMAND_SET: u8 = 1;
/// The length of a page of Identify.
pub const IDENTIFY_BYTES: usize = 4096;
