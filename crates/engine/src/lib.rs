//! Engines: what a store can do, whichever paper it comes from.
//!
//! [`Engine`] is the object-safe seam between the fronts (library, command line, server) and the engines. Values are
//! pushed into a callback: no copy is forced on anyone, and no lifetime crosses a lock.

mod batch_op;
mod check;
mod clock;
mod compaction;
mod engine;
mod error;
mod hash;
pub mod hikv;
mod host_dram;
mod ordered_engine;
mod places;
mod relax;
mod snapshot_engine;
mod streamed;
mod verify;
mod worker;

pub use batch_op::BatchOp;
pub use check::{Check, Depth};
pub use clock::{Clock, Ttl};
pub use compaction::{Compacted, CompactionProgress, CompactionStats};
pub use engine::{Damage, Decide, Decision, Engine, EngineStats, Held, OnExpired, Progress, Version, Wanted};
pub use error::{Error, Limits, OpenError};
pub use hash::Hasher;
pub use hikv::HiKv;
pub use hikv::order::{HashOnly, Ordered};
pub use host_dram::HostDram;
pub use index::bplus_tree::Direction;
pub use index::partitioned_hash::{Cursor, layout::SEGMENT_ENTRY_COUNT};
pub use items::Expiry;
pub use ordered_engine::{Early, OrderState, OrderStats, OrderedEngine, ScanCursor, Visit};
pub use snapshot_engine::{Moment, Show, Skip, SnapshotEngine, SnapshotStats};
pub use verify::Verify;
pub use worker::Worker;
