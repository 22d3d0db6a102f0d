//! A store as an NVMe-KV device: hosts connect over NVMe/TCP, or over memory shared with the device (`rings`), and use
//! the Key Value command set.
//!
//! ```text
//! socket -> Input -> nvme::Framing -> Session -> Group -> Store -> Output -> socket
//!                                        |-> admin, fabrics: Controller
//! ```
//!
//! As the transport defines it, a connection is a queue: a host's first connection creates a controller, and further
//! ones are its I/O queues. Each thread runs one `event_loop` with its own share of the connections; the first also
//! accepts.
//!
//! # Rules
//! - A command is completed only when the data it wrote or read is as durable as the store's medium allows: until then
//!   completions wait in `output` behind a ticket ([`hikv::Store::deferred`]). If the data can never become durable,
//!   the connection is closed without completing the command.
//! - Received data is copied once and validated in place. A PDU that violates the transport ends the connection, with
//!   the reason; a command that violates its command set is refused with a status.
//! - A connection holds at most one incomplete PDU, [`limits::TRANSFER_BYTES_MAX`] of values in transfer, and unsent
//!   completions of [`limits::OUTPUT_BYTES_MAX`] plus one command's data. A host that does not read is not served. A
//!   connection that does not become a queue in time is closed.
//! - A controller ends with the admin queue's connection, and then all of the controller's queues end.
//!
//! # Lock order
//! The controllers' table -> a controller's state. Neither is held while the store is used. A change of feature 20h
//! holds a third lock while the store is used, and takes no other lock in that time.

mod accept;
mod admin;
mod apply;
mod auth;
mod config;
mod connection;
mod controller;
mod device;
mod event_loop;
mod events;
mod group;
mod input;
mod keys;
pub mod limits;
mod listening;
mod must_exist;
mod output;
mod pages;
mod queue;
mod rate_limit;
mod reply;
mod session;
mod shared;
mod socket;
mod stop;
mod table;
mod transfers;
mod walk;

pub use auth::Secrets;
pub use config::Config;
pub use device::{Device, StartError};
pub use listening::Listening;
pub use stop::StopHandle;
