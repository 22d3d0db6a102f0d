//! The server in this process, and its clients.

mod acl;
mod bits;
mod clients;
mod commands;
mod common;
mod config_file;
mod connections;
mod durable;
mod engines;
mod errands;
mod exec;
mod keys;
mod limits;
mod ordered;
mod pipelines;
mod pubsub;
mod puts;
mod saves;
mod scan;
mod secrets;
mod statistics;
mod stop;
mod strings;
mod tls;
mod transactions;
mod watching;
