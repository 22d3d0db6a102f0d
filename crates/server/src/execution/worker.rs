//! The event loop, as seen by its connections.

use std::time::Instant;

use super::errands::Errands;
use crate::connections::buffers::Buffers;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;

/// What a connection needs of its event loop for a turn.
pub(crate) struct Worker<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) errands: &'a Errands,
    /// The loop's lane of the gate.
    pub(crate) lane: usize,
    pub(crate) counters: &'a LoopCounters,
    /// When the poller reported.
    pub(crate) woke: Instant,
    pub(crate) buffers: &'a mut Buffers,
}
