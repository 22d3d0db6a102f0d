//! What the commands do, a file for each family. Their rows are in [`crate::table`]; each file says which function is whose
//! ([`functions`]). Arguments are counted before a command is called.

mod acl;
mod bitfield;
mod bits;
mod client;
mod client_waiting;
mod command;
mod config;
mod connection;
mod databases;
mod debug;
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
mod strings;
mod times;
mod transactions;
pub(crate) mod values;
