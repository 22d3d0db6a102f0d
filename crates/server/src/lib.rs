//! A server for Redis clients on a hikv store.
//!
//! ```text
//! socket -> Input -> resp::Parser -> Requests -> Pipeline -> commands -> Reply -> Output -> socket
//! ```
//!
//! Each thread runs one `event_loop` with its own share of the connections; the first also accepts. A connection's
//! turn reads once, runs every complete request it holds and sends the replies, so a pipeline costs one read and one
//! write. No lock is held across I/O. What a connection can hold is bounded: a request by [`resp::Limits`], unsent
//! replies by `output`, which stops the reading of a client that does not read; an idle connection holds no buffer.
//!
//! A write is durable, as far as the store's medium goes, before its reply is sent.

mod accept;
mod buffers;
mod commands;
mod config;
mod connection;
mod errors;
mod event_loop;
mod file_limit;
mod glob;
mod input;
mod output;
mod pipeline;
mod reads;
mod server;
mod shared;
mod stop;

pub use config::Config;
pub use server::Server;
pub use stop::StopHandle;
