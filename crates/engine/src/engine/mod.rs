//! The interface between front ends and engines.
//!
//! | trait | operations |
//! |---|---|
//! | [`Identity`] | the engine's name, features and limits; the identity of its store |
//! | [`Reads`] | values by their keys |
//! | [`Writes`] | puts and deletes that do not depend on the present values |
//! | [`Atomic`] | changes in one step: of a key given its present item, and of several keys |
//! | [`Expires`] | the expiry of keys, and callbacks for keys that have expired |
//! | [`Walks`] | walks over all keys, their number, and the check of the store |
//! | [`Maintenance`] | background work |
//!
//! An engine implements each trait; only methods without a default are required. All are supertraits of [`Engine`]: a
//! call through `dyn Engine` is one virtual call. Two further traits are optional: [`OrderedEngine`] and
//! [`SnapshotEngine`].

mod atomic;
mod expires;
mod identity;
mod maintenance;
mod reads;
mod walks;
mod writes;

use crate::{EngineStats, Error, OrderedEngine, SnapshotEngine};

pub use atomic::{Atomic, CurrentItem, Decide, Decision};
pub use expires::{Expires, OnExpired, OnExpiredItem};
pub use identity::Identity;
pub use maintenance::{Maintenance, WantedThreads};
pub use reads::{OnFound, Reads};
pub use walks::{Damage, Walks};
pub use writes::{OnResult, Writes};

/// The operations of every engine. All methods may be called by many threads at the same time. When a write returns, it
/// is durable as far as the medium allows.
///
/// # Errors
/// Every method that can fail may return [`Error::Medium`] or, for damage, [`Error::Corrupt`]. Methods with keys and
/// values may return [`Error::KeyTooLong`] and [`Error::ValueTooLong`]. An operation that an engine lacks
/// ([`Identity::features`]) returns [`Error::Unsupported`] and changes nothing, unless the engine says otherwise. The
/// methods name further errors.
pub trait Engine: Writes + Expires + Walks + Maintenance {
    /// Returns the error that blocks writes to a store that was opened for writing. Costs a load.
    ///
    /// # Errors
    /// [`Error::Medium`] if the medium has failed.
    fn health(&self) -> Result<(), Error>;

    /// Makes every write that has returned as durable as the medium can, if it was acknowledged with less.
    fn sync(&self) -> Result<(), Error>;

    /// Writes an image that makes the next open quick, if there is space. No other thread uses the
    /// engine during the call. No acknowledged write depends on it.
    fn close(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the engine's statistics.
    fn stats(&self) -> EngineStats;

    /// Returns the volatile memory that the engine uses, in bytes. Reads none of the region.
    fn dram_bytes(&self) -> u64 {
        let stats = self.stats();
        stats.dram_bytes + stats.order.map_or(0, |order| order.dram_bytes)
    }

    /// Returns the ordered operations, if the engine can keep keys in order.
    fn ordered(&self) -> Option<&dyn OrderedEngine> {
        None
    }

    /// Returns the snapshot operations, if the engine has them.
    fn snapshots(&self) -> Option<&dyn SnapshotEngine> {
        None
    }
}

fn unsupported(engine: &'static str, what: &'static str) -> Error {
    Error::Unsupported { engine, what }
}
