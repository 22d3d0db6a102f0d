//! A server for Redis clients on a hikv store.
//!
//! ```text
//! transport -> Input -> resp::Parser -> Requests -> Pipeline -> commands -> Reply -> Output -> transport
//! ```
//!
//! Each thread runs one `event_loop` with its own share of the connections; the first also accepts. A connection's
//! turn reads once, runs every complete request it holds and sends the replies, so a pipeline costs one read and one
//! write. No lock is held across I/O. What a connection can hold is bounded: a request by [`resp::Limits`], unsent
//! replies by `output`, which stops the reading of a client that does not read; an idle connection holds no buffer.
//!
//! A write is durable, as far as the store's medium goes, before its reply is sent. Only the reply waits for that
//! (`held`): the loop serves others meanwhile (`docs/decisions/0022-the-servers-loops.md`).

mod accept;
mod acl;
mod buffers;
mod call;
mod claims;
mod clients;
mod commands;
mod config;
mod connection;
mod cross_protocol;
mod databases;
mod decimal;
mod dispatch;
mod errands;
mod errors;
mod event_loop;
mod expired;
mod file_limit;
mod gate;
mod glob;
mod held;
mod http;
mod idle;
#[cfg(feature = "in-process")]
mod in_process;
mod input;
mod items;
mod latency;
mod listen;
mod log;
mod log_writer;
mod mail;
mod memory;
mod monitors;
mod notify;
mod output;
mod output_limits;
mod patience;
mod pause;
mod pipeline;
mod prepared;
mod pubsub;
mod reads;
mod replacement;
mod saves;
mod secrets;
mod server;
mod session;
mod settings;
mod shared;
mod slowlog;
mod sparkline;
mod start;
mod stop;
mod table;
mod telemetry;
#[cfg(test)]
mod testing;
mod tracking;
mod transport;
mod watch;
mod writes;

pub use config::{Config, Tls};
pub use http::HttpPort;
#[cfg(feature = "in-process")]
pub use in_process::InProcess;
pub use log::{LogControl, LogFormat, LogLevel};
pub use prepared::Prepared;
pub use secrets::Secret;
pub use server::Server;
pub use start::Parameters;
pub use stop::StopHandle;
pub use transport::{ClientCertificate, TlsFiles, TlsReload};
