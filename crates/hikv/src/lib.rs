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
//! # Reading and writing
//!
//! A [`Store`] has one [`Tree`] of keys, whose methods are called on the store. [`Tree::get`] returns a [`Value`], a
//! copy that stays as it is. [`PutOptions`] add an expiry, a condition or another durability to a put:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let store = hikv::Store::open(dir.path())?;
//! use hikv::{Error, PutOptions};
//! use std::time::Duration;
//!
//! let lease = PutOptions::new().expect_absent().ttl(Duration::from_secs(60));
//! store.put_with("leader", "ada", lease)?;
//! match store.put_with("leader", "bob", lease) {
//!     Err(Error::ConditionFailed { .. }) => println!("another node leads"),
//!     other => other?,
//! }
//! assert_eq!(store.increment("elections", 1)?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A [`WriteBatch`] changes several keys as one step: a crash, and every reader, sees all of it or nothing.
//!
//! # Transactions
//!
//! [`Store::transact`] runs a closure whose reads and writes happen at one moment. If another thread changes an item
//! that the closure has read, the closure runs again:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let store = hikv::Store::open(dir.path())?;
//! use hikv::Error;
//!
//! store.multi_put([("ann", "70"), ("bob", "20")])?;
//! let amount = |value: Option<hikv::Value>| {
//!     value.and_then(|value| str::from_utf8(&value).ok()?.parse::<u64>().ok()).unwrap_or(0)
//! };
//! let is_paid = store.transact(|tx| {
//!     let (ann, bob) = (amount(tx.get("ann")?), amount(tx.get("bob")?));
//!     if ann < 50 {
//!         return Ok::<_, Error>(false);
//!     }
//!     tx.put("ann", (ann - 50).to_string())?;
//!     tx.put("bob", (bob + 50).to_string())?;
//!     Ok(true)
//! })?;
//! assert!(is_paid);
//! assert_eq!(store.get("bob")?.as_deref(), Some(&b"70"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! # Keys in order
//!
//! [`Tree::range`] and [`Tree::prefix`] return iterators in key order, [`Tree::ordered`] further operations. With the
//! default engine, the first of these calls builds the order in the background:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let store = hikv::Store::open(dir.path())?;
//! store.multi_put([("fruit:apple", "red"), ("fruit:banana", "yellow"), ("nut:hazel", "brown")])?;
//! let fruits: Vec<_> = store.prefix("fruit:")?.collect::<Result<_, _>>()?;
//! assert_eq!(fruits.len(), 2);
//! for item in store.range("fruit:b"..)?.rev() {
//!     let (key, value) = item?;
//!     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # One moment, and another place
//!
//! A [`Snapshot`] reads the store as it was at one moment while writers continue. [`Store::backup`] writes such a
//! moment into a new store:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (path, monday) = (dir.path().join("store"), dir.path().join("monday"));
//! let store = hikv::Store::open(&path)?;
//! store.put("stock", "7")?;
//! let evening = store.snapshot()?;
//! store.put("stock", "6")?;
//! assert_eq!(evening.get("stock")?.as_deref(), Some(&b"7"[..]));
//! store.backup(&monday, |_| {})?;
//! assert_eq!(hikv::Store::open_read_only(&monday)?.get("stock")?.as_deref(), Some(&b"6"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! # Durability
//!
//! By default, a write returns when it survives as much as the storage allows: on a disk, a power failure.
//! [`Options::durability`] lowers that for a store, [`Store::with_durability`] for a handle, and
//! [`PutOptions::durability`] for one put. Event loops write with [`Store::deferred`], and reply when a ticket is
//! durable.
//!
//! # Threads, processes, closing
//!
//! A [`Store`] is cheap to clone, and any number of threads may use it. One process at a time may have a store open
//! for writing. While none has, several processes may read it ([`Store::open_read_only`]). In a child process after a
//! fork, every operation returns [`Error::Forked`]. Dropping the last handle closes the store; [`Store::close`] also
//! returns the error of closing.
//!
//! [`Options`] chooses engine, sizes and clock; [`Store::stats`] and [`Store::health`] watch a store; [`repair`] and
//! [`dump`] work on damaged and exported ones.

mod background;
mod backup;
mod backup_error;
mod backup_place;
mod batch;
mod copy_mark;
mod copying;
mod dir_lock;
pub mod dump;
mod engine_kind;
mod engines;
mod error;
mod events;
mod file_names;
mod files;
mod files_status;
mod filling;
mod format;
mod front_end;
mod handles;
mod in_place;
mod journal_files;
mod latest;
mod memory;
mod opener;
mod opening;
mod options;
mod ordered;
mod partial;
mod probes;
mod put_options;
mod read_view;
mod reader;
pub mod repair;
mod reply;
mod snapshot;
mod stats;
mod store;
mod transaction;
mod tree;
mod trees;
pub mod typed;
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
pub use front_end::FrontEnd;
pub use in_place::{InPlace, ItemView};
pub use opening::OpenProgress;
pub use options::{Emulation, Options, Tuning};
pub use ordered::{Item, ItemRef, Keys, OrderProgress, Ordered, Range, prefix_range};
pub use pmem::{Durability, MediumError};
pub use put_options::{Expires, PutOptions};
pub use read_view::ReadView;
pub use reader::ValueReader;
pub use reply::CallbackReply;
pub use snapshot::Snapshot;
pub use stats::{JournalStats, PageStats, Stats};
pub use store::{Store, Ticket, Waker};
pub use transaction::{Entry, Transact, Transaction, TxRange, TxTree};
pub use tree::{Iter, IterKeys, Tree};
#[doc(hidden)]
pub use trees::StoredKeysUser;
pub use trees::{TreeInfo, TreeStats};
pub use value::{Value, VersionedValue};
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
