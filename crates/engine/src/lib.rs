//! What a store can do, whichever engine keeps it.
//!
//! [`Engine`] is the object-safe seam between the fronts (library, command line, server) and the engines, each of which is a
//! crate of its own. Values are pushed into a callback: no copy is forced on the caller, and no lifetime crosses a lock; but what a look
//! finds ([`Engine::look`]) is returned, and ends with the caller's pin. This crate knows no engine and no index.

mod answer;
mod batch_op;
mod check;
mod clock;
mod compaction;
mod cursor;
mod engine;
mod error;
pub mod expectation;
mod expired_hook;
mod features;
mod figure;
mod hash;
mod look;
mod ordered_engine;
pub mod pool;
mod reaper;
mod relax;
mod room;
mod scan_cursor;
mod snapshot_engine;
mod streamed;
mod verify;
mod version;
mod worker;

pub use answer::{Answer, Before};
pub use batch_op::{BatchOp, Condition};
pub use check::{Check, Depth};
pub use clock::{Clock, Ttl};
pub use compaction::{Compacted, CompactionProgress, CompactionStats};
pub use cursor::Cursor;
pub use engine::{Damage, Decide, Decision, Engine, EngineStats, Held, OnExpired, Progress, Told, Wanted};
pub use error::{Error, Limits, OpenError};
pub use expectation::Expectation;
pub use expired_hook::ExpiredHook;
pub use features::{Features, Order};
pub use figure::{Figure, FigureKind};
pub use hash::Hasher;
pub use items::Expiry;
pub use look::{Look, Room, Seen, empty_room};
pub use ordered_engine::{Early, OrderState, OrderStats, OrderedEngine, Upkeep, Visit};
pub use reaper::{Reaper, WalkAll};
pub use relax::{relax, relax_by_threads};
pub use room::{while_readers_keep, with_room};
pub use scan_cursor::{Direction, ScanCursor};
pub use snapshot_engine::{Moment, Show, Skip, SnapshotEngine, SnapshotStats};
pub use streamed::Streamed;
pub use verify::Verify;
pub use version::Version;
pub use worker::{Watch, Worker};
