//! The commands' functions, one file per family.
//!
//! Their rows are in [`crate::table`]; each file maps row names to functions ([`functions`]). The number of arguments
//! is checked before a function is called.

mod acl;
mod bitfield;
mod bits;
mod client;
mod client_waiting;
mod cluster;
mod command;
mod config;
mod connection;
mod databases;
mod debug;
mod decimal;
mod dump;
mod expiry;
pub(crate) mod functions;
mod hello;
mod help;
mod info;
mod keys;
mod latency;
mod lcs;
mod memory;
mod moving;
mod numbers;
mod object;
mod ordered;
mod pubsub;
mod rdb;
mod scan;
mod scripting;
mod server;
mod set;
mod slowlog;
mod sparkline;
mod strings;
mod times;
mod tracking;
mod transactions;
pub(crate) mod values;
