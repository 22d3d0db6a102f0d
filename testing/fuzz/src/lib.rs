//! Properties that must hold for any bytes that a client, or a C program, sends. Each function is a fuzz target: it
//! panics if a property does not hold.
//!
//! `libfuzzer/` runs the targets with libFuzzer. `tests/fuzz/slice.rs` runs the same targets with a few thousand inputs
//! and without libFuzzer.

mod acl;
mod c_batches;
mod commands;
mod pdus;
mod rdb_files;
mod replies;
mod requests;
mod restore;
mod script_calls;
mod scripts;
mod served;

pub use acl::acl_rules;
pub use c_batches::c_batches;
pub use commands::commands;
pub use pdus::pdus;
pub use rdb_files::rdb_files;
pub use replies::replies;
pub use requests::{Parsed, parse, requests};
pub use restore::restore;
pub use script_calls::script_calls;
pub use scripts::scripts;
pub use served::STORES_VARIABLE;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets, by the names of their corpora.
pub const TARGETS: [(&str, Target); 10] = [
    ("acl_rules", acl_rules),
    ("c_batches", c_batches),
    ("commands", commands),
    ("pdus", pdus),
    ("rdb_files", rdb_files),
    ("replies", replies),
    ("requests", requests),
    ("restore", restore),
    ("script_calls", script_calls),
    ("scripts", scripts),
];
