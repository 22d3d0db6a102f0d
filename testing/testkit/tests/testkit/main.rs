//! Tests of the test tools: correct stores pass, and every broken variant is caught.

mod canaries;
mod conformance;
mod contention;
mod explorer;
mod slot_table;
mod variant;
