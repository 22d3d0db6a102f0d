//! The program as its users run it: real processes, real files, exit codes and what is said.

mod backup;
mod bad_input;
mod bad_store;
mod batch;
mod bench;
mod changes;
mod config;
mod durability;
mod expiry;
mod failing_disk;
mod idle;
mod interrupted;
mod items;
mod logs;
mod medium;
mod pages;
mod repair;
mod scan;
mod serve;
mod serve_tls;
mod state;
mod strace;
mod support;
mod transfer;
