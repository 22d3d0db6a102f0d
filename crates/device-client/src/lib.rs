//! A client of NVMe Key Value devices, over TCP, or over memory shared with a device of this machine: one command at a time, or
//! many at once.
//!
//! A [`Client`] is a host with a controller of its own and one queue for commands. A client connects again when its connection breaks.
//! First the device is made to end the controller of the connection that broke. Then the client repeats what the device had not
//! completed, as far as repeating it changes nothing ([`Client::run`]): what is repeated was done by then or never. Below the client, a
//! [`Queue`] sends commands and receives completions as they are, for tools and tests.
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
mod patience;
mod queue;
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
