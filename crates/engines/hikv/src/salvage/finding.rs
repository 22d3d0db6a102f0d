//! The results of a salvage, and their receiver.

use std::fmt;
use std::ops::ControlFlow;

use heap::HeapError;

use engine::{Error, Expiry, OpenError};

/// The effect of a finding on the items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Something is damaged, without any loss.
    Mended,
    /// Something was taken, or chosen, on incomplete evidence.
    Doubtful,
    /// Something is lost.
    Lost,
}

/// A finding of a salvage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The effect on the items.
    pub weight: Weight,
    /// The offset into the region.
    pub offset: u64,
    /// The key concerned, if it can be read.
    pub key: Option<Vec<u8>>,
    /// The damage, and the action taken.
    pub what: String,
}

/// The result of taking a salvaged item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The key was new.
    New,
    /// The key had been taken with the same value.
    Same,
    /// The key had been taken with another value, which stays.
    Other,
}

/// The receiver of the items.
pub trait Sink {
    /// Takes an item, unless its key was taken before.
    ///
    /// # Errors
    /// The error that prevents it from being stored, which ends the salvage.
    fn take(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Taken, Error>;

    /// Receives a finding.
    fn found(&mut self, finding: Finding);

    /// Receives the progress of reading the index from time to time; returns whether to continue.
    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()>;
}

/// The reason why a salvage ended early.
#[derive(Debug)]
pub enum SalvageError {
    /// Nothing can be salvaged, or the region belongs to another program.
    Unusable(OpenError),
    /// The sink failed.
    Sink(Error),
    /// The sink stopped the salvage.
    Stopped,
}

impl fmt::Display for SalvageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SalvageError::Unusable(error) => error.fmt(f),
            SalvageError::Sink(error) => error.fmt(f),
            SalvageError::Stopped => f.write_str("the salvage was stopped"),
        }
    }
}

impl std::error::Error for SalvageError {}

impl From<HeapError> for SalvageError {
    fn from(error: HeapError) -> SalvageError {
        SalvageError::Unusable(error.into())
    }
}
