//! The state shared by all event loops.

use std::sync::Arc;

use hikv::StoredKeysUser;
use hikv::pool::Sharing;

use crate::StopHandle;
use crate::administration::Administration;
use crate::clients::session::Session;
use crate::clients::{Clients, Record};
use crate::connections::backlog::Backlogs;
use crate::execution::gate::Gate;
use crate::execution::pause::Pause;
use crate::execution::waiters::Waiters;
use crate::keyspace::Keyspace;
use crate::messages::Mailboxes;
use crate::observers::Observers;
use crate::observers::tracking::MessageAccess;
use crate::pool::Pool;
use crate::scripts::Scripts;
use crate::telemetry::{LoopCounters, Telemetry};

/// The state of one server.
pub(crate) struct Shared {
    pub(crate) keyspace: Keyspace,
    pub(crate) clients: Clients,
    pub(crate) observers: Observers,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) backlogs: Backlogs,
    pub(crate) gate: Gate,
    pub(crate) pause: Pause,
    pub(crate) waiters: Waiters,
    pub(crate) scripts: Scripts,
    pub(crate) administration: Administration,
    pub(crate) telemetry: Telemetry,
    /// The event loops as a thread pool.
    pub(crate) pool: Pool,
    pub(crate) split: Sharing,
    pub(crate) stop: StopHandle,
}

impl StoredKeysUser for Shared {
    fn while_idle(&self, change: &mut dyn FnMut()) {
        let _alone = self.gate.close_to_all();
        change();
        self.adopt_catalog();
    }
}

impl Shared {
    /// Reads which namespaces the databases have, after another thread may have changed them. No command is under way.
    pub(crate) fn adopt_catalog(&self) {
        self.keyspace.collections.wake.wake_for_lost();
        if self.keyspace.databases.adopt(&self.keyspace.store) {
            self.observers.tracking.invalidate_all(self.message_access());
        }
    }

    /// Returns the counters of the client's event loop.
    pub(crate) fn counters_of(&self, session: &Session) -> &LoopCounters {
        &self.telemetry.loops[session.record.place.loop_index]
    }

    /// Creates the session of a new client.
    pub(crate) fn new_session(&self, record: Arc<Record>) -> Session {
        self.clients.add(&record);
        let mut session = Session::new(record);
        session.log_in(self.administration.acl.initial_login());
        session
    }

    /// Returns the access needed to send messages about tracked keys.
    pub(crate) fn message_access(&self) -> MessageAccess<'_> {
        MessageAccess { mailboxes: &self.mailboxes, clients: &self.clients }
    }

    /// Resets the client to its state on arrival, except for its login.
    pub(crate) fn reset(&self, session: &mut Session) {
        self.observers.forget(session);
        session.reset();
    }

    /// Removes a disconnected client.
    pub(crate) fn dismiss(&self, session: &mut Session) {
        self.forget_wait(session);
        self.reset(session);
        self.clients.remove(session.id);
    }

    /// Returns whether a postponed client may check whether it can proceed; if not, a wake-up or the end of a pause
    /// will follow.
    pub(crate) fn may_resume(&self) -> bool {
        self.pause.remaining().is_none() && !self.mailboxes.is_full() && !self.scripts.holds_waiting()
    }
}
