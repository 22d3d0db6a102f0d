//! What all event loops share.

use std::sync::Arc;

use hikv::pool::Sharing;

use crate::StopHandle;
use crate::administration::Administration;
use crate::clients::session::Session;
use crate::clients::{Clients, Record};
use crate::connections::backlog::Backlogs;
use crate::execution::gate::Gate;
use crate::execution::pause::Pause;
use crate::keyspace::Keyspace;
use crate::mail::Post;
use crate::observers::Observers;
use crate::observers::tracking::Ways;
use crate::pool::Pool;
use crate::telemetry::Telemetry;

/// The state of one server.
pub(crate) struct Shared {
    pub(crate) keyspace: Keyspace,
    pub(crate) clients: Clients,
    pub(crate) observers: Observers,
    pub(crate) post: Post,
    pub(crate) backlogs: Backlogs,
    pub(crate) gate: Gate,
    pub(crate) pause: Pause,
    pub(crate) administration: Administration,
    pub(crate) telemetry: Telemetry,
    /// The event loops, as they share the work with the store's threads.
    pub(crate) pool: Pool,
    pub(crate) split: Sharing,
    pub(crate) stop: StopHandle,
}

impl Shared {
    /// The session of a client that has come.
    pub(crate) fn welcome(&self, record: Arc<Record>) -> Session {
        self.clients.add(&record);
        let mut session = Session::new(record);
        session.log_in(self.administration.acl.initial_login());
        session
    }

    /// The means to send messages about tracked keys.
    pub(crate) fn ways(&self) -> Ways<'_> {
        Ways { post: &self.post, clients: &self.clients }
    }

    /// The client is again as on arrival, but for its login.
    pub(crate) fn reset(&self, session: &mut Session) {
        self.observers.forget(session);
        session.reset();
    }

    /// The client is gone.
    pub(crate) fn dismiss(&self, session: &mut Session) {
        self.reset(session);
        self.clients.remove(session.id);
    }

    /// Whether a client that waits for others may look whether it can go on; if not, there will be a wake-up, or a pause ends.
    pub(crate) fn lets_go_on(&self) -> bool {
        self.pause.remaining().is_none() && !self.post.is_full()
    }
}
