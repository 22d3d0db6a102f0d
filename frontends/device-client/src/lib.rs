//! A client of NVMe Key Value devices over TCP, or over memory shared with a device of this machine, for single
//! commands or many in flight.
//!
//! A [`Client`] is a host with its own controller and one queue for commands. A client reconnects when the connection
//! breaks. First the client makes the device end the controller of the broken connection; then the client repeats the
//! commands that were not completed, if repetition is safe ([`Client::run`]). A repeated command was executed before
//! that, or not at all. Below the client, a [`Queue`] sends raw commands and receives completions, for tools and tests.
//!
//! ```no_run
//! # fn main() -> Result<(), device_client::Error> {
//! use device_client::{Client, Options};
//!
//! let mut client = Client::connect("127.0.0.1:4420", Options::default())?;
//! client.store("answer", "42")?;
//! assert_eq!(client.retrieve("answer")?.as_deref(), Some(&b"42"[..]));
//! # Ok(())
//! # }
//! ```

mod auth;
mod by_id;
mod client;
mod controller;
mod endpoint;
mod error;
mod operation;
mod queue;
mod retry_limit;
mod several;
mod wire;

pub use auth::Secrets;
pub use client::{Client, Item, Options};
pub use controller::{Controller, discover, discover_at};
pub use endpoint::{Endpoint, Stream};
pub use error::Error;
pub use nvme::StoreIf;
pub use nvme::dhchap::Secret;
pub use operation::{Operation, Outcome};
pub use queue::{Completed, Host, Queue};
pub use wire::Wire;
