//! The tools themselves: what is sound passes, and every broken twin is caught.

mod canaries;
mod conformance;
mod contention;
mod explorer;
mod slot_table;
mod twin;
