//! An embedded key-value store for persistent memory, tmpfs and ordinary disks.
//!
//! Keys and values are byte strings. A write is durable when it returns, as far as the storage allows;
//! [`Stats::durability`] names the level. After a crash a store opens in milliseconds, whatever its size.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("store");
//! use hikv::Store;
//!
//! let store = Store::open(&path)?;
//! store.put("answer", "42")?;
//! assert_eq!(store.get("answer")?.as_deref(), Some(&b"42"[..]));
//! assert!(store.delete("answer")?);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Store`] is cheap to clone, and any number of threads may use it. One process at a time may have a store open
//! for writing. While none has, several processes may read it ([`Store::open_read_only`]). In a child process after a
//! fork, every operation returns [`Error::Forked`].

mod background;
mod backup;
mod backup_error;
mod backup_place;
mod batch;
mod copy_mark;
mod dir_lock;
pub mod dump;
mod engine_kind;
mod engines;
mod error;
mod events;
mod files;
mod files_status;
mod filling;
mod format;
mod handles;
mod in_place;
mod journal_files;
mod latest;
mod opener;
mod opening;
mod options;
mod ordered;
mod partial;
mod probes;
mod progress_reply;
mod put_options;
mod read_view;
mod reader;
pub mod repair;
mod snapshot;
mod stats;
mod store;
mod tree;
mod value;
mod verify;
mod walk;

pub use background::{Background, StepResult};
pub use backup::{BackupProgress, BackupReport, convert, convert_skipping_damage, restore};
pub use backup_error::BackupError;
pub use batch::WriteBatch;
pub use engine::pool;
pub use engine::{
    Clock, CompactionProgress, CompactionReport, CurrentItem, Damage, Decision, Error, Expiry, Features, Figure,
    FigureKind, Limits, OnExpired, OnExpiredItem, Order, QueueStats, Ttl, Verify, Version,
};
pub use engine_kind::{EngineKind, UnknownEngine};
pub use error::OpenError;
pub use files_status::FilesStatus;
pub use format::Format;
pub use in_place::InPlace;
pub use opening::OpenProgress;
pub use options::{Emulation, Options, Tuning};
pub use ordered::{Item, OrderProgress, Ordered, Range, prefix_range};
pub use pmem::{Durability, MediumError};
pub use progress_reply::ProgressReply;
pub use put_options::{Expires, PutOptions};
pub use read_view::ReadView;
pub use reader::ValueReader;
pub use snapshot::Snapshot;
pub use stats::{JournalStats, Stats};
pub use store::{Store, Ticket, Waker};
pub use tree::Tree;
pub use value::Value;
pub use verify::{Report, VerifyProgress};
pub use walk::Cursors;

/// Threads share a store and its snapshots, and pass ranges on.
const _: () = {
    const fn is_shared<T: Send + Sync + Clone>() {}
    const fn is_shared_as_it_is<T: Send + Sync>() {}
    is_shared::<Store>();
    is_shared::<Snapshot>();
    is_shared::<Ordered>();
    is_shared::<WriteBatch>();
    is_shared_as_it_is::<Tree>();
    is_shared_as_it_is::<Range>();
    is_shared_as_it_is::<ValueReader>();
    is_shared_as_it_is::<Value>();
    is_shared_as_it_is::<Error>();
    is_shared_as_it_is::<OpenError>();
};
