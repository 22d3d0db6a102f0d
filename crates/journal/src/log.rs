//! What opening or making a log leaves to the journal.

use std::time::Duration;

use crate::slots::Slots;
use crate::writer::Writer;

/// The first position. What an earlier process left lies before it.
pub(crate) const FIRST_POSITION: u64 = 1;

/// The state of a log that was read or made.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) identity: [u8; 16],
    pub(crate) slots: Slots,
    pub(crate) writer: Writer,
    /// How much of each slot has space.
    pub(crate) capacity_bytes: u64,
}

/// What opening did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// Bytes of the log that were read.
    pub replayed_bytes: u64,
    /// How long that took.
    pub replay_time: Duration,
}
