//! What the commands do, a file for each family. Their rows in the table are in [`crate::table`]; arguments are counted
//! before a command is called.

pub(crate) mod acl;
pub(crate) mod bitfield;
pub(crate) mod bits;
pub(crate) mod client;
pub(crate) mod client_waiting;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod databases;
pub(crate) mod debug;
pub(crate) mod dump;
pub(crate) mod expiry;
pub(crate) mod hello;
pub(crate) mod info;
pub(crate) mod keys;
pub(crate) mod latency;
pub(crate) mod lcs;
pub(crate) mod memory;
pub(crate) mod moving;
pub(crate) mod numbers;
pub(crate) mod object;
pub(crate) mod ordered;
pub(crate) mod pubsub;
pub(crate) mod scan;
pub(crate) mod scripting;
pub(crate) mod server;
pub(crate) mod set;
pub(crate) mod slowlog;
pub(crate) mod strings;
pub(crate) mod transactions;

pub(crate) mod help;
mod rdb;
mod times;
