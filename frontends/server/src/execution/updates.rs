//! Groups of INCR, DECR, INCRBY and DECRBY.
//!
//! Consecutive requests of one of these commands in a pipeline execute one after the other, as they would without the
//! group. But the memory that all of them need is prefetched first, so that its accesses overlap, and one look at the
//! clock and at the limits serves the group.

use std::borrow::Cow;
use std::time::Duration;

use resp::{Request, Requests};

use super::call::{Call, Function};
use super::client::{self, Client};
use super::{needs, writes};
use crate::commands::functions;
use crate::connections::output::Output;
use command_table::Entry;

/// Consecutive requests of one command, which changes the key that is its first argument.
pub(crate) struct Updates<'a> {
    entry: Entry,
    function: Function,
    requests: Vec<Request<'a>>,
}

impl<'a> Updates<'a> {
    /// Collects the requests from number `first` on, which was admitted as `entry`. `None` if there is only one, or
    /// they must be executed separately.
    pub(crate) fn gather(
        entry: Entry,
        requests: &'a Requests,
        input: &'a [u8],
        first: usize,
        client: &mut Client<'_>,
    ) -> Option<Updates<'a>> {
        let lacked = needs::missing(entry.command.policy.needs, &client.shared.keyspace.features);
        if !writes::may_group(client) || lacked.is_some() || client.check_memory(entry).is_err() {
            return None;
        }
        let requests = writes::alike(entry, requests, input, first, client.session)?;
        Some(Updates { entry, function: functions::of(entry)?, requests })
    }

    /// Returns the requests.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request<'a>> + use<'a, '_> {
        self.requests.iter().copied()
    }

    /// Prefetches the memory that the requests need.
    pub(crate) fn prefetch(&self, client: &Client<'_>) {
        let namespace = client.shared.keyspace.namespace(client.session.db);
        let keys: Vec<Cow<'_, [u8]>> = self.requests().map(|request| namespace.raw(request.argument(1))).collect();
        hikv::FrontEnd::of(&client.shared.keyspace.store).prefetch(&keys);
    }

    /// Executes one of the requests and writes its reply.
    pub(crate) fn answer(&self, request: Request<'_>, client: &mut Client<'_>, output: &mut Output) {
        let Client { shared, session, event_counts } = client;
        let reply = output.reply(session.protocol);
        let (entry, start) = (self.entry, reply.len_bytes());
        let (pending, announcements) = (None, None);
        let mut call = Call { shared, session, entry, request, reply, event_counts, pending, announcements };
        if let Err(refusal) = call.apply(self.function) {
            call.shared.counters_of(call.session).commands.note_failed(entry.number);
            let refusal = client::in_client_terms(refusal, entry, &request, call.namespace());
            call.refuse(start, &refusal);
        }
    }

    /// Records the requests, and the time that they took together.
    pub(crate) fn note(&self, took: Duration, client: &mut Client<'_>) {
        writes::note(self.entry, &self.requests, took, client);
    }
}
