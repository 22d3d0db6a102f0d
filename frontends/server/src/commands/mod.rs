//! The commands' functions, one file per family.
//!
//! Their rows are in [`crate::table`]; each file lists its functions, which have the names of their rows
//! ([`functions`]). The number of arguments is checked before a function is called.

/// Returns a list of row names and their functions. A row has the name of its function behind the prefix of the list,
/// or the name before `=>`.
macro_rules! functions {
    ($($prefix:literal: [$($($name:literal =>)? $function:ident),* $(,)?]),* $(,)?) => {
        &[$($((functions!(@name $prefix $function $($name)?), $function),)*)*]
    };
    (@name $prefix:literal $function:ident) => { concat!($prefix, stringify!($function)) };
    (@name $prefix:literal $function:ident $name:literal) => { concat!($prefix, $name) };
    ($($($name:literal =>)? $function:ident),* $(,)?) => {
        functions!["": [$($($name =>)? $function),*]]
    };
}

mod acl;
mod bitfield;
mod bits;
mod blocking;
mod client;
mod client_waiting;
mod cluster;
mod command;
mod config;
mod connection;
mod counts;
mod databases;
mod debug;
mod decimal;
mod dump;
mod expiry;
pub(crate) mod functions;
mod hashes;
mod hello;
mod help;
mod info;
mod keys;
mod latency;
mod lcs;
mod libraries;
mod lists;
mod lpos;
mod members;
mod memory;
mod moving;
mod numbers;
mod object;
mod ordered;
mod pubsub;
mod scan;
mod scripting;
mod server;
mod set;
mod sets;
mod slowlog;
mod sort;
mod sorted_sets;
mod sparkline;
mod streams;
mod strings;
mod times;
mod tracking;
pub(crate) mod transactions;
pub(crate) mod values;
