//! Groups of commands that each change one collection, as HSET, SADD, LPUSH and ZADD.
//!
//! Consecutive ones of a pipeline are executed one after the other, each on the result of those before it, and all
//! their changes are written as one batch. So a record that all of them change is written once, and the store publishes
//! one change instead of one per command.
//!
//! 1. All keys are locked, as those of one command ([`Locks`](crate::keyspace::collections::Locks)).
//! 2. The commands run as those of a transaction ([`Pending`]), and write their replies.
//! 3. One batch. If it fails because the store is full, nothing has changed: the replies go, and the commands are
//!    executed one by one, because some of them may need no space. After another error, that is the reply to each.
//! 4. Watchers, tracking clients and subscribers are notified.
//!
//! Other clients see none of the changes before step 3, and all of them after it. To them the commands happen at that
//! moment; no client has a reply before it. A client that waits for an element must be served between two commands, so
//! there are no groups while a client waits. One that begins to wait for a key needs its lock.

use std::slice;
use std::time::Instant;

use hikv::Error;
use resp::{Request, Requests};

use super::background::weight;
use super::call::{Call, Function};
use super::client::{self, Client};
use super::{needs, permission, writes};
use crate::commands::functions;
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::keyspace::items::Pending;
use crate::observers::announcements::Announcements;
use command_table::{Action, Entry};

/// Maximum number of requests in a group.
const GROUP_COUNT_MAX: usize = 64;
/// Maximum length of the requests of a group: a batch of this length takes less than a millisecond.
const GROUP_BYTES_MAX: usize = 256 << 10;

/// Consecutive requests that change collections.
pub(crate) struct Changes<'a>(Vec<(Entry, Function, Request<'a>)>);

impl<'a> Changes<'a> {
    /// Collects the requests from number `first` on, which was admitted as `entry`. `None` if there is only one, or
    /// they must be executed separately.
    pub(crate) fn gather(
        entry: Entry,
        requests: &'a Requests,
        input: &'a [u8],
        first: usize,
        client: &mut Client<'_>,
    ) -> Option<Changes<'a>> {
        let lacked = needs::missing(entry.command.policy.needs, &client.shared.keyspace.features);
        if !writes::may_group(client) || lacked.is_some() || !client.shared.waiters.are_none() {
            return None;
        }
        let (mut group, mut len_bytes) = (Vec::new(), 0);
        for number in first..requests.len().min(first + GROUP_COUNT_MAX) {
            let request = requests.get(number, input);
            let Ok(entry) = permission::admit(&request, client.session) else { break };
            len_bytes += request.span_bytes();
            if entry.command.action != Action::Change
                || len_bytes > GROUP_BYTES_MAX
                || weight::thread_for(entry, &request, client.session, client.shared).is_some()
                || client.check_memory(entry).is_err()
            {
                break;
            }
            group.push((entry, functions::of(entry)?, request));
        }
        (group.len() > 1).then_some(Changes(group))
    }

    /// Executes the group, answers, and returns its length. Returns `None`, and has done nothing, if the requests must
    /// be executed one by one.
    pub(crate) fn execute(&self, client: &mut Client<'_>, output: &mut Output) -> Option<usize> {
        let (shared, db) = (client.shared, client.session.db);
        let (keyspace, namespace) = (&shared.keyspace, shared.keyspace.namespace(db));
        keyspace.databases.note_use(keyspace.items(None), namespace).ok()?;
        let keys = self.0.iter().map(|(_, _, request)| request.argument(1));
        let locked = keyspace.collections.locks.lock(namespace, keys, true);
        if !shared.waiters.are_none() {
            return None;
        }
        let (pending, announcements, began) = (Pending::default(), Announcements::default(), Instant::now());
        let start = output.reply(client.session.protocol).len_bytes();
        for (entry, function, request) in &self.0 {
            apply((*entry, *function, *request), (&pending, &announcements), client, output);
        }
        match pending.write(&keyspace.store) {
            Ok(()) => announcements.send(shared, client.session),
            Err(error) if error.is_full() => {
                output.reply(client.session.protocol).truncate(start);
                return None;
            }
            Err(error) => self.refuse(start, error, client, output),
        }
        drop(locked);
        let share = began.elapsed() / self.0.len() as u32;
        self.0.iter().for_each(|(entry, _, request)| writes::note(*entry, slice::from_ref(request), share, client));
        shared.serve_waiters();
        Some(self.0.len())
    }

    /// Answers all requests with an error.
    #[cold]
    fn refuse(&self, start: usize, error: Error, client: &mut Client<'_>, output: &mut Output) {
        let refusal = Refusal::Store(error);
        output.reply(client.session.protocol).truncate(start);
        for (entry, ..) in &self.0 {
            client.shared.counters_of(client.session).commands.note_failed(entry.number);
            let text = client.note_failed(*entry, &refusal);
            output.reply(client.session.protocol).error(&text);
        }
    }
}

/// Executes one of the requests, and writes its reply.
fn apply(
    (entry, function, request): (Entry, Function, Request<'_>),
    (pending, announcements): (&Pending, &Announcements),
    client: &mut Client<'_>,
    output: &mut Output,
) {
    let Client { shared, session, event_counts } = client;
    let reply = output.reply(session.protocol);
    let start = reply.len_bytes();
    let (pending, announcements) = (Some(pending), Some(announcements));
    let mut call = Call { shared, session, entry, request, reply, event_counts, pending, announcements };
    if let Err(refusal) = call.apply(function) {
        call.shared.counters_of(call.session).commands.note_failed(entry.number);
        let refusal = client::in_client_terms(refusal, entry, &request, call.namespace());
        call.refuse(start, &refusal);
    }
}
