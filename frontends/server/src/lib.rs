//! A server for Redis clients on a hikv store.
//!
//! ```text
//! transport -> Input -> resp::Parser -> Requests -> Pipeline -> commands -> Reply -> Output -> transport
//! ```
//!
//! Each thread runs one `event_loop` with its own share of the connections; the first also accepts. A connection's turn
//! reads once, executes every complete request and sends the replies, so a pipeline costs one read and one write. No
//! lock is held across I/O. A connection's memory is bounded: a request by [`resp::Limits`], unsent replies by
//! `output`, which stops reading from a client that does not read; an idle connection holds no buffer.
//!
//! A write is as durable as the store's medium allows before its reply is sent. Only the reply waits for that (`held`),
//! while the loop serves other clients (`docs/decisions/0022-never-let-an-event-loop-wait.md`).

mod administration;
mod clients;
mod commands;
mod config;
mod connections;
mod errors;
mod execution;
mod http;
#[cfg(feature = "in-process")]
mod in_process;
mod keyspace;
mod messages;
mod observers;
mod pool;
mod prepared;
mod reclaimer;
mod scripts;
mod server;
mod shared;
mod stop;
mod telemetry;
#[cfg(test)]
mod testing;
mod transfer;

pub use administration::byte_order_mark::{read_unmarked, starts_with_mark, without_mark};
pub use administration::log::{LogControl, LogFormat, LogLevel};
pub use administration::secrets::Secret;
pub use administration::start::Parameters;
pub use config::{Config, Tls};
pub use connections::transport::{ClientCertificate, TlsFiles, TlsReload};
pub use http::HttpPort;
#[cfg(feature = "in-process")]
pub use in_process::InProcess;
pub use prepared::Prepared;
pub use server::Server;
pub use stop::StopHandle;
pub use transfer::{Export, ExportedCollection, Import, Imported, TransferError};
