//! A device over TCP, as hosts see it.
//!
//! `cargo xtask device conformance` prints the list of `conformance` line by line.

mod authentication;
mod conformance;
mod controllers;
mod fuzz;
mod hostile;
mod keys;
mod reconnect;
mod speed;
mod support;
mod transport;
mod values;
mod walks;
