//! Execution of requests, from the parsed request to the reply.
//!
//! A turn of a connection executes the requests in its pipeline: adjacent reads, writes, increments and changes of
//! collections as groups (`reads`, `writes`, `updates`, `changes`), all other requests one by one (`dispatch`). Long
//! requests are moved to `background`.
//! `gate` and `pause` decide which requests wait. Each command receives a `Call`.

pub(crate) mod background;
pub(crate) mod call;
mod changes;
pub(crate) mod claims;
pub(crate) mod client;
pub(crate) mod collections;
mod cross_protocol;
mod dispatch;
pub(crate) mod gate;
pub(crate) mod gathered;
pub(crate) mod needs;
pub(crate) mod panics;
pub(crate) mod pause;
pub(crate) mod permission;
pub(crate) mod pipeline;
mod reads;
mod turn;
mod updates;
pub(crate) mod waiters;
mod waiting;
pub(crate) mod worker;
mod writes;
