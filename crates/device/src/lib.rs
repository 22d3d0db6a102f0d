//! A store as a storage device: hosts attach to it by NVMe over TCP, or over memory shared with the device (`rings`), and use the
//! commands of the Key Value command set.
//!
//! ```text
//! socket -> Input -> nvme::Framing -> Session -> Group -> Store -> Output -> socket
//!                                        |-> admin, fabrics: Controller
//! ```
//!
//! A connection is a queue, as the transport has it: the first of a host makes a controller, and further ones are its queues for
//! commands on keys. Each thread runs one `event_loop` with its own share of the connections; the first also accepts.
//!
//! # Rules
//! - A command is completed when what it did, or read, is durable as far as the store's medium goes, and never before: completions wait in
//!   `output` behind a ticket ([`hikv::Store::deferred`]). If it can never be durable the connection is closed and nothing is completed.
//! - What a peer sends is copied once and checked as it lies there. A PDU that contradicts the transport ends the connection, with
//!   its reason; a command that contradicts its command set gets a status.
//! - A connection holds at most one PDU that is not whole, [`limits::TRANSFER_BYTES_MAX`] of values on their way, and unsent
//!   completions of [`limits::OUTPUT_BYTES_MAX`] and one command's data. A host that does not read is not served. A connection
//!   that is no queue in time is closed.
//! - A controller ends with the admin queue's connection, and then all its queues do.
//!
//! # Lock order
//! The controllers' table -> a controller's state. Neither is held while the store is used. A change of feature 20h holds a third lock
//! while the store is used, and takes no other within.

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
mod reply;
mod seldom;
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
