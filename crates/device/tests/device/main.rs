//! A device over TCP, as hosts see it.
//!
//! `cargo xtask device conformance` prints the list of `conformance` line by line.

mod conformance;
mod hostile;
mod reconnect;
mod support;
mod values;
