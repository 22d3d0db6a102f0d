//! A client that is away, with all that it has.

use std::time::Instant;

use hikv::Ticket;

use crate::clients::session::Session;
use crate::connections::input::Input;
use crate::execution::pipeline::Pipeline;
use crate::telemetry::BatchCounts;

/// What a client works with, and what is before it.
pub(crate) struct Desk {
    pub(crate) session: Session,
    pub(crate) pipeline: Pipeline,
    pub(crate) input: Input,
}

/// What came of an errand.
pub(crate) struct Done {
    pub(crate) desk: Desk,
    pub(crate) reply: Vec<u8>,
    pub(crate) ticket: Ticket,
    pub(crate) counts: BatchCounts,
    /// When the poller reported the request.
    pub(crate) woke: Instant,
}

impl Desk {
    /// Forgets what is done: a loop would take long to give a long request's memory back.
    pub(super) fn tidy(&mut self) {
        if self.pipeline.is_done() {
            self.input.consume(self.pipeline.restart());
            self.input.shrink();
        }
    }
}
