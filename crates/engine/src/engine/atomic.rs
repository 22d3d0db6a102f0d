//! Changes in one step: of a key given its present item, and of several keys.

use std::borrow::Cow;

use super::{Identity, unsupported};
use crate::{BatchOp, Condition, Error, Expiry};

/// A decision about a key, given its current value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision<'v> {
    /// Leaves the key as it is.
    Keep,
    /// Puts this value and keeps the key's expiry.
    Put(Cow<'v, [u8]>),
    /// Puts this value with this expiry.
    PutUntil(Cow<'v, [u8]>, Expiry),
    /// Deletes the key.
    Delete,
}

/// The current value and expiry of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurrentItem<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The expiry.
    pub expiry: Expiry,
}

/// Decides about a key: receives its current item, or `None`.
pub type Decide<'a, 'v> = dyn FnMut(Option<CurrentItem<'_>>) -> Decision<'v> + 'a;

/// Changes in one step: of a key given its present item, and of several keys.
pub trait Atomic: Identity {
    /// Changes the key as `decide` returns for its current item, in one step; returns true if anything changed.
    /// `decide` runs without locks, is called again if another thread wrote the key in between, and its last decision
    /// is the one carried out. It should be quick: freed space is not reused while it runs.
    fn update<'v>(&self, _key: &[u8], _decide: &mut Decide<'_, 'v>) -> Result<bool, Error> {
        Err(unsupported(self.name(), "writes that depend on what a key holds"))
    }

    /// Puts and deletes several keys in one step for readers and for a crash. If a key occurs twice, its last operation
    /// counts. The ordered index, which scans read, takes the changes one by one. A batch without operations changes
    /// nothing; it fails when other writes would.
    ///
    /// # Errors
    /// [`Error::BatchTooLong`].
    fn write_batch(&self, ops: &[BatchOp<'_>]) -> Result<(), Error> {
        self.write_batch_if(&[], ops)
    }

    /// As [`Atomic::write_batch`], if all conditions hold. All conditions are judged at one moment before any operation
    /// of the batch is visible, and no other write comes between. A key may have a condition, or be written, or both.
    /// See `docs/decisions/0015-compare-versions-under-the-locks.md`.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] names a condition that did not hold; nothing has changed.
    fn write_batch_if(&self, _conditions: &[Condition<'_>], _ops: &[BatchOp<'_>]) -> Result<(), Error> {
        Err(unsupported(self.name(), "batches"))
    }
}
