//! Many threads on one store. Every key's history is linearizable, no value is torn or belongs to another key, `clear`
//! and batches are atomic, walks miss nothing, snapshots show one moment, and readers of large values detect
//! replacement.
//!
//! The ignored tests run the same for longer: `cargo test -p hikv --release --test contention -- --ignored`.

mod absence;
mod batches;
mod clearing;
mod compacting;
mod histories;
mod increments;
mod place;
mod roles;
mod snapshots;
mod tree_counts;
mod trees;
mod value_readers;
mod walks;
