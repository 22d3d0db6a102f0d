//! The state of a client whose request runs in the background.

use std::time::Instant;

use hikv::Ticket;

use crate::clients::session::Session;
use crate::connections::input::Input;
use crate::execution::pipeline::Pipeline;
use crate::telemetry::BatchCounts;

/// A client's session, its pipeline and its unparsed input.
pub(crate) struct ClientState {
    pub(crate) session: Session,
    pub(crate) pipeline: Pipeline,
    pub(crate) input: Input,
}

/// The result of a background job.
pub(crate) struct JobResult {
    pub(crate) client_state: ClientState,
    pub(crate) reply: Vec<u8>,
    pub(crate) ticket: Ticket,
    pub(crate) counts: BatchCounts,
    /// When the poller reported the request.
    pub(crate) woke: Instant,
}

impl ClientState {
    /// Drops finished requests here, because freeing a long request would take an event loop too long.
    pub(super) fn drop_finished(&mut self) {
        if self.pipeline.is_done() {
            self.input.consume(self.pipeline.restart());
            self.input.shrink();
        }
    }
}
