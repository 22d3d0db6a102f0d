//! The operations of a store, independent of the engine that implements them.
//!
//! [`Engine`], with its supertraits, is the object-safe interface between the front ends (library, command line,
//! server) and the engines, each of which is a separate crate. Reads pass values to a callback, so that no copy is
//! forced on the caller and no lifetime crosses a lock. Exception: [`Reads::lookup`] returns the value, which is valid
//! until the caller unpins. This crate depends on no engine and no index.

mod batch_op;
mod check;
mod clock;
mod compact;
mod conditional;
mod cursor;
mod engine;
mod engine_stats;
mod error;
pub mod expectation;
mod expired_hook;
mod features;
mod figure;
pub mod garbage;
mod hash;
mod key_changes;
mod limits;
mod lookup;
mod open_error;
mod ordered_engine;
pub mod pace;
pub mod pool;
mod progress;
mod reaper;
mod relax;
mod scan_cursor;
mod snapshot_engine;
mod space;
mod streamed;
mod verify;
mod version;
mod worker;
mod write_result;

pub use batch_op::{BatchOp, Condition, Required};
pub use check::{Check, Depth};
pub use clock::{Clock, Ttl};
pub use compact::canary;
pub use compact::{
    Compacting, Compaction, CompactionProgress, CompactionReport, CompactionStats, Compacts, Moved, OnCompaction, Pass,
};
pub use conditional::write_decided;
pub use cursor::Cursor;
pub use engine::{
    Atomic, CurrentItem, Damage, Decide, Decision, Engine, Expires, Identity, Maintenance, OnExpired, OnExpiredItem,
    OnFound, OnResult, Reads, Walks, WantedThreads, Writes,
};
pub use engine_stats::EngineStats;
pub use error::Error;
pub use expectation::Expectation;
pub use expired_hook::{COPIED_BYTES_MAX, ExpiredHook, ExpiredItem, in_expired_callback, report_late};
pub use features::{Features, Order};
pub use figure::{Figure, FigureKind};
pub use garbage::WriteThrottle;
pub use hash::Hasher;
pub use items::Expiry;
pub use key_changes::{KeyChanges, MARK, OnKeyChange, Pause, Removal};
pub use limits::Limits;
pub use lookup::{Lookup, PackedLookup, ValueBuffer, empty_buffer};
pub use open_error::OpenError;
pub use ordered_engine::{Early, OrderState, OrderStats, OrderedEngine, QueueStats, Visit};
pub use pace::Pace;
pub use progress::Progress;
pub use reaper::{Reaper, WalkAll};
pub use relax::{relax, relax_by_threads};
pub use scan_cursor::{Direction, ScanCursor};
pub use snapshot_engine::{Moment, OnDamaged, OnItem, SnapshotEngine, SnapshotStats};
pub use space::{may_write, wait_for_readers, with_space};
pub use streamed::Streamed;
pub use verify::Verify;
pub use version::{Version, Witness};
pub use worker::{Watch, Worker};
pub use write_result::{Outcome, PriorState, WriteResult};

/// The traits of an engine, for code that calls the operations of a type that implements them.
pub mod prelude {
    pub use crate::{
        Atomic, Engine, Expires, Identity, Maintenance, OrderedEngine, Reads, SnapshotEngine, Walks, Writes,
    };
}
