//! An engine's name, its features and limits, and the identity of its store.

use crate::{Error, Features, Limits};

/// The name, the features and the limits of an engine, and the identity of its store.
pub trait Identity: Send + Sync {
    /// Returns the engine's name in stats and options.
    fn name(&self) -> &'static str;

    /// Returns the optional operations that the engine offers.
    fn features(&self) -> Features {
        Features::POINTS
    }

    /// Returns the longest keys, values and batches.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Returns the store's identity, from its superblock.
    fn uuid(&self) -> [u8; 16];

    /// Returns true if the store's region has the flag of named trees.
    fn has_trees(&self) -> bool {
        false
    }

    /// Sets the flag of named trees permanently. It is durable before anything that is written after this returns.
    ///
    /// # Errors
    /// [`Error::Medium`] if the store takes no writes; [`Error::Unsupported`] of an engine without batches.
    fn set_has_trees(&self) -> Result<(), Error> {
        Err(Error::Unsupported { engine: self.name(), what: "named trees" })
    }
}
