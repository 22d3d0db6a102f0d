//! Engines: what a store can do, whichever paper it comes from.
//!
//! [`Engine`] is the object-safe seam between the fronts (library, command line, server) and the engines. Values are
//! pushed into a callback: no copy is forced on anyone, and no lifetime crosses a lock.

mod batch_op;
mod check;
mod compaction;
mod engine;
mod error;
mod expiry;
mod hash;
pub mod hikv;
mod host_dram;
mod ordered_engine;
mod places;
mod relax;
mod snapshot_engine;
mod worker;

pub use batch_op::BatchOp;
pub use check::{Check, Depth};
pub use compaction::{Compacted, CompactionProgress, CompactionStats};
pub use engine::{Damage, Decide, Decision, Engine, EngineStats, Held, OnExpired, Progress, Version, Wanted};
pub use error::{Error, Limits, OpenError};
pub use expiry::{Clock, Expiry, Ttl};
pub use hash::Hasher;
pub use hikv::HiKv;
pub use hikv::order::{HashOnly, Ordered};
pub use host_dram::HostDram;
pub use index::bplus_tree::Direction;
pub use index::partitioned_hash::{Cursor, layout::SEGMENT_ENTRY_COUNT};
pub use ordered_engine::{Early, OrderState, OrderStats, OrderedEngine, ScanCursor, Visit};
pub use snapshot_engine::{Moment, Show, SnapshotEngine, SnapshotStats};
pub use worker::Worker;
