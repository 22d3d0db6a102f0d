//! The state that opening or creating a log passes to the journal.

use std::time::Duration;

use crate::slots::Slots;
use crate::writer::Writer;

/// The state of a log that was read or created.
#[derive(Debug)]
pub(crate) struct OpenedLog {
    pub(crate) identity: [u8; 16],
    pub(crate) slots: Slots,
    pub(crate) writer: Writer,
    /// The number of bytes of each slot that have space.
    pub(crate) capacity_bytes: u64,
}

/// The result of an opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// Bytes of the log that were read.
    pub replayed_bytes: u64,
    /// The time that this took.
    pub replay_time: Duration,
}
