//! Writes of values: SET without options, in groups.
//!
//! Consecutive ones of a pipeline are put together, so that their memory accesses overlap and they share what makes them
//! durable. They are no batch: others may see some of them done, as if they had come one after the other.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use resp::{Request, Requests};

use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::execution::{accounts, permission};
use crate::keyspace::items::Items;
use crate::keyspace::slot::Slot;
use crate::observers::events::{NEW, STRING};
use crate::observers::notify;
use crate::shared::Shared;
use crate::table::{Action, Entry};

/// Keys put at a time: two of the store's groups.
const GROUP_COUNT_MAX: usize = 32;
/// `SET key value`.
const ARGUMENT_COUNT: usize = 3;

/// SETs that wait at the same place of a pipeline.
pub(crate) struct Puts<'a> {
    entry: Entry,
    requests: Vec<Request<'a>>,
}

impl<'a> Puts<'a> {
    /// The SETs from request number `first` on, which was admitted as `entry`; none if it is no SET without options, or
    /// must be executed by itself.
    pub(crate) fn gather(
        entry: Entry,
        requests: &'a Requests,
        input: &'a [u8],
        first: usize,
        session: &Session,
        shared: &Shared,
    ) -> Option<Puts<'a>> {
        if entry.command.action != Action::Put || !may_group(session, shared) {
            return None;
        }
        let mut puts = Puts { entry, requests: Vec::with_capacity(GROUP_COUNT_MAX.min(requests.len() - first)) };
        for number in first..requests.len().min(first + GROUP_COUNT_MAX) {
            let request = requests.get(number, input);
            let is_admitted = || number == first || is_admitted(entry, &puts.requests[0], &request, session);
            if request.len() != ARGUMENT_COUNT || !is_admitted() {
                break;
            }
            puts.requests.push(request);
        }
        (puts.requests.len() > 1).then_some(puts)
    }

    /// Puts all of them and answers, and returns how many they were, and how long that took; `None` if they must be executed one by one: nothing
    /// has been answered then, and whatever was put will be put again.
    pub(crate) fn execute(
        &self,
        session: &mut Session,
        shared: &Shared,
        output: &mut Output,
    ) -> Option<(usize, Duration)> {
        accounts::check_memory(self.entry, session, shared).ok()?;
        let slot = shared.keyspace.slot(session.db);
        accounts::note_use(self.entry, slot, shared, Items::new(&shared.keyspace.store, None)).ok()?;
        let began = Instant::now();
        shared.keyspace.store.multi_put(&self.items(slot)).ok()?;
        let took = began.elapsed();
        let count = self.requests.len();
        accounts::counters(shared, session).note(self.entry.number, count as u64, took / count as u32);
        let mut reply = output.reply(session.protocol);
        for request in &self.requests {
            notify::tell_changed(shared, STRING, "set", (session.db, slot, request.argument(1)));
            accounts::note_time(self.entry, session, request, shared, took);
            reply.simple("OK");
        }
        Some((count, took))
    }

    fn items(&self, slot: Slot) -> Vec<(Cow<'a, [u8]>, &'a [u8])> {
        self.requests.iter().map(|request| (slot.raw(request.argument(1)), request.argument(2))).collect()
    }
}

/// Whether nobody looks at the single requests, or keeps some of them out.
fn may_group(session: &Session, shared: &Shared) -> bool {
    session.is_plain()
        && shared.observers.monitors.is_empty()
        && !shared.gate.has_claim()
        && shared.administration.settings.notified_classes() & NEW == 0
}

/// Whether a request is admitted as the same command as `first`, which has as many arguments.
fn is_admitted(entry: Entry, first: &Request<'_>, request: &Request<'_>, session: &Session) -> bool {
    if request.name() == first.name() {
        return session.login.user().is_some_and(|user| user.check(entry, request).is_ok());
    }
    permission::admit(request, session).is_ok_and(|other| other.number == entry.number)
}
