//! An event loop from the view of its connections.

use std::time::Instant;

use super::background::BackgroundJobs;
use crate::connections::buffers::Buffers;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;

/// The parts of an event loop that a connection uses during a turn.
pub(crate) struct Worker<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) background: &'a BackgroundJobs,
    /// The loop's lane in the gate.
    pub(crate) lane: usize,
    pub(crate) counters: &'a LoopCounters,
    /// When the poller returned.
    pub(crate) woke: Instant,
    pub(crate) buffers: &'a mut Buffers,
}
