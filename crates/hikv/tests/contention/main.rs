//! Many threads and one store: every key's history is linearizable, no value is torn or another's, `clear` is one step, and
//! so are batches, walks miss nothing, snapshots are of one moment, and readers of large values notice replacement.
//!
//! The tests that are ignored are the same for longer: `cargo test -p hikv --release --test contention -- --ignored`.

mod absence;
mod batches;
mod clearing;
mod compacting;
mod histories;
mod increments;
mod place;
mod roles;
mod snapshots;
mod value_readers;
mod walks;
