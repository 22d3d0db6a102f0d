//! Groups of SET without options.
//!
//! Consecutive SETs of a pipeline are put together, so that memory accesses overlap and one sync makes all of them
//! durable. They are not a batch: other clients may see some of the SETs done, as after separate execution. Each SET is
//! answered with its own outcome. None is executed twice, because a repeated SET would overwrite values that other
//! clients have written in between.

use std::borrow::Cow;
use std::iter;
use std::time::{Duration, Instant};

use hikv::Error;
use resp::{Request, Requests};

use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::execution::client::{self, Client};
use crate::execution::permission;
use crate::keyspace::namespace::Namespace;
use crate::observers::events::{NEW, STRING};
use crate::observers::notify;
use command_table::Entry;

/// Maximum number of requests in a group: two groups of the store, whose memory stays in the processor's caches.
const GROUP_COUNT_MAX: usize = 32;
/// The number of arguments of `SET key value`.
const ARGUMENT_COUNT: usize = 3;

/// Consecutive SETs of a pipeline.
pub(crate) struct Puts<'a> {
    entry: Entry,
    requests: Vec<Request<'a>>,
}

impl<'a> Puts<'a> {
    /// Collects the SETs from request number `first` on, which was admitted as `entry`. `None` if there is only one
    /// without options, or they must be executed separately.
    pub(crate) fn gather(
        entry: Entry,
        requests: &'a Requests,
        input: &'a [u8],
        first: usize,
        client: &Client<'_>,
    ) -> Option<Puts<'a>> {
        if !may_group(client) || requests.get(first, input).len() != ARGUMENT_COUNT {
            return None;
        }
        alike(entry, requests, input, first, client.session).map(|requests| Puts { entry, requests })
    }

    /// Puts the group, answers, and returns its length. Returns `None`, and has done nothing, if the requests must be
    /// executed one by one.
    pub(crate) fn execute(&self, client: &mut Client<'_>, output: &mut Output) -> Option<usize> {
        client.check_memory(self.entry).ok()?;
        let (shared, db, client_id) = (client.shared, client.session.db, client.session.id);
        let (namespace, counters) = (shared.keyspace.namespace(db), shared.counters_of(client.session));
        let items = shared.keyspace.items(None);
        shared.keyspace.databases.note_use(items, namespace).ok()?;
        let view = shared.keyspace.view(items, namespace);
        let keys = || self.requests.iter().map(|request| request.argument(1));
        let _locked = view.map(|_| shared.keyspace.collections.locks.lock(namespace, keys(), true));
        if view.is_some_and(|view| view.contain_any(keys()).unwrap_or(true)) {
            return None;
        }
        let (mut failed, began) = (Vec::new(), Instant::now());
        let on_result = |number, done: Result<(), Error>| failed.extend(done.err().map(|error| (number, error)));
        hikv::FrontEnd::of(&shared.keyspace.store).multi_put_each(&self.items(namespace), on_result);
        let took = began.elapsed();
        let count = self.requests.len();
        note(self.entry, &self.requests, took, client);
        counters.note_changes((count - failed.len()) as u64);
        let mut reply = output.reply(client.session.protocol);
        for (number, request) in self.requests.iter().enumerate() {
            if let Some(at) = failed.iter().position(|(failed, _)| *failed == number) {
                let refusal = client::in_client_terms(failed.swap_remove(at).1.into(), self.entry, request, namespace);
                counters.commands.note_failed(self.entry.number);
                reply.error(&client.note_failed(self.entry, &refusal));
            } else {
                notify::report_changed(shared, STRING, "set", (db, namespace, request.argument(1)), client_id);
                reply.simple("OK");
            }
        }
        Some(count)
    }

    fn items(&self, namespace: Namespace) -> Vec<(Cow<'a, [u8]>, &'a [u8])> {
        self.requests.iter().map(|request| (namespace.raw(request.argument(1)), request.argument(2))).collect()
    }
}

/// Returns whether requests may be grouped: no client monitors single requests, and none is blocked.
pub(super) fn may_group(Client { shared, session, .. }: &Client<'_>) -> bool {
    session.is_plain()
        && shared.observers.monitors.is_empty()
        && !shared.gate.has_claim()
        && shared.administration.settings.notified_classes() & NEW == 0
}

/// Returns the consecutive requests from number `first` on, which was admitted as `entry`, that are admitted as the
/// same command and as long; `None` if there is only one.
pub(super) fn alike<'a>(
    entry: Entry,
    requests: &'a Requests,
    input: &'a [u8],
    first: usize,
    session: &Session,
) -> Option<Vec<Request<'a>>> {
    let leader = requests.get(first, input);
    let is_alike =
        |request: &Request<'_>| request.len() == leader.len() && is_admitted(entry, &leader, request, session);
    let numbers = first + 1..requests.len().min(first + GROUP_COUNT_MAX);
    let others = numbers.map(|number| requests.get(number, input)).take_while(is_alike);
    let group: Vec<_> = iter::once(leader).chain(others).collect();
    (group.len() > 1).then_some(group)
}

/// Records the requests of a group, and the time that they took together.
pub(super) fn note(entry: Entry, requests: &[Request<'_>], took: Duration, client: &mut Client<'_>) {
    client.event_counts.add_time(entry.kind(), took);
    client.event_counts.batch.add_requests(entry.kind(), requests.len());
    let commands = &client.shared.counters_of(client.session).commands;
    commands.note(entry.number, requests.len() as u64, took / requests.len() as u32);
    requests.iter().for_each(|request| client.note_time(entry, request, took));
}

/// Returns whether a request is admitted as the same command as `first`, with as many arguments.
fn is_admitted(entry: Entry, first: &Request<'_>, request: &Request<'_>, session: &Session) -> bool {
    if request.name() == first.name() {
        return session.login.user().is_some_and(|user| user.check(entry, request).is_ok());
    }
    permission::admit(request, session).is_ok_and(|other| other.number == entry.number)
}
