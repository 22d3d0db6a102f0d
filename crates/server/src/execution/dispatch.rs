//! From a request to the command that answers it: is there room, must the request wait in a transaction, who sees it.

use std::sync::atomic::Ordering;
use std::time::Instant;

use resp::Request;

use super::accounts;
use super::call::Call;
use super::permission;
use crate::clients::session::Session;
use crate::commands::functions;
use crate::connections::output::Output;
use crate::errors::{Refusal, Sentence};
use crate::observers::events::NEW;
use crate::shared::Shared;
use crate::table::{Entry, flag};
use crate::telemetry::Tally;

/// Bytes of requests that a transaction may have waiting: as much as the longest request.
const QUEUED_BYTES_MAX: usize = resp::Limits::REQUEST_BYTES_MAX;

/// A request that the client may send, on the way to its reply.
pub(crate) struct Execution<'e, 'c> {
    entry: Entry,
    call: &'e mut Call<'c>,
}

impl<'e, 'c> Execution<'e, 'c> {
    /// That of a request which names the command of `entry`.
    pub(crate) fn new(entry: Entry, call: &'e mut Call<'c>) -> Execution<'e, 'c> {
        Execution { entry, call }
    }

    /// Answers a request that its client may send.
    pub(crate) fn answered(
        entry: Entry,
        request: Request<'_>,
        session: &mut Session,
        shared: &Shared,
        output: &mut Output,
        tally: &mut Tally,
    ) {
        let reply = output.reply(session.protocol);
        Execution::new(entry, &mut Call { shared, session, request, reply, tally, pending: None }).answer();
    }

    /// Answers with what the command says, or keeps the request for later. A refusal takes the place of whatever the command has
    /// said before it: there is one reply.
    fn answer(mut self) {
        self.call.session.record.command.store(self.entry.number, Ordering::Relaxed);
        self.call.tally.batch.add_requests(self.entry.kind(), 1);
        let start = self.call.reply.len_bytes();
        if let Err(refusal) = self.outcome() {
            self.refuse(start, &refusal);
        }
        if !self.entry.command.is_about_clients() {
            self.call.session.forget_caching();
        }
        if !self.call.session.takes_reply() && !self.entry.command.pushes() {
            self.call.reply.truncate(start);
        }
    }

    fn outcome(&mut self) -> Result<(), Refusal> {
        if let Err(refusal) = accounts::check_memory(self.entry, self.call.session, self.call.shared) {
            accounts::counters(self.call.shared, self.call.session).note_rejected(self.entry.number);
            permission::note_refused(&refusal, self.call.session, self.call.shared);
            if self.entry.command.executes() {
                accounts::show_to_monitors(self.entry, self.call.session, &self.call.request, self.call.shared);
            }
            return Err(refusal);
        }
        if self.call.session.queues(self.entry) { self.queue() } else { self.run() }
    }

    /// Adds the request to the client's transaction, which is broken if that cannot be.
    fn queue(&mut self) -> Result<(), Refusal> {
        let (command, request) = (self.entry.command, &self.call.request);
        let transaction = self.call.session.transaction.as_mut().expect("it is in one");
        let refusal = if command.has(flag::NO_MULTI) {
            Sentence::NotInTransaction
        } else if transaction.requests.capacity_bytes() > QUEUED_BYTES_MAX {
            Sentence::TransactionTooLong
        } else {
            transaction.needs_space |= command.has(flag::DENYOOM);
            transaction.changes |= command.is_noticed();
            transaction.requests.push_copy(request);
            self.call.reply.simple("QUEUED");
            return Ok(());
        };
        transaction.is_broken = true;
        Err(refusal.into())
    }

    /// Answers with a refusal in place of what was said from `start` on.
    #[cold]
    fn refuse(&mut self, start: usize, refusal: &Refusal) {
        let Call { shared, tally, reply, .. } = &mut *self.call;
        let text = accounts::note_refusal(refusal, self.entry, shared, tally);
        reply.truncate(start);
        reply.error(&text);
    }

    /// Executes the request, and says how it went. The caller holds a pass, or is alone if the command must be.
    pub(crate) fn run(&mut self) -> Result<(), Refusal> {
        let (entry, shared) = (self.entry, self.call.shared);
        accounts::check_engine(entry, self.call.session, shared)?;
        if self.call.session.tracks.is_some_and(|tracks| tracks.remembers()) && entry.command.has(flag::READONLY) {
            self.track();
        }
        let tells_new = shared.administration.settings.notified_classes() & NEW != 0 && entry.command.has(flag::WRITE);
        let absent = if tells_new { self.absent_keys()? } else { Vec::new() };
        let outcome = self.apply();
        // Behind it, as in Redis: so EXEC comes behind its commands, and SELECT in the database that it has chosen.
        accounts::show_to_monitors(entry, self.call.session, &self.call.request, shared);
        self.tell_new(&absent)?;
        outcome.map_err(|refusal| {
            accounts::counters(shared, self.call.session).note_failed(entry.number);
            accounts::in_own_words(refusal, entry, &self.call.request, self.call.namespace())
        })
    }

    /// Does what the command says, and takes note of how long that took.
    fn apply(&mut self) -> Result<(), Refusal> {
        let began = Instant::now();
        let outcome = match functions::of(self.entry) {
            Some(function) => function(self.call),
            None => Err(Refusal::ArgumentCount { command: self.entry.command.name }),
        };
        let took = began.elapsed();
        if self.call.pending.is_none() {
            // Else it is part of a transaction's time.
            self.call.tally.add_time(self.entry.kind(), took);
        }
        let Call { shared, session, request, .. } = &*self.call;
        accounts::note_time(self.entry, session, request, shared, took);
        accounts::counters(shared, session).note(self.entry.number, 1, took);
        outcome
    }

    /// The numbers of the arguments that are keys which the request may make.
    #[cold]
    fn absent_keys(&self) -> Result<Vec<usize>, Refusal> {
        let (call, mut absent) = (&*self.call, Vec::new());
        for (index, _) in self.entry.command.keys_of(&call.request).filter(|(_, access)| access.writes()) {
            if !call.store().contains(call.key(index))? {
                absent.push(index);
            }
        }
        Ok(absent)
    }

    fn tell_new(&self, absent: &[usize]) -> Result<(), Refusal> {
        for index in absent {
            if self.call.store().contains(self.call.key(*index))? {
                self.call.report(NEW, "new", *index);
            }
        }
        Ok(())
    }

    /// Notes the keys that a client is about to read.
    fn track(&self) {
        let (call, shared) = (&*self.call, self.call.shared);
        let key_count_max = shared.administration.settings.tracked_key_count_max();
        for (index, _) in self.entry.command.keys_of(&call.request) {
            let key = (&*call.key(index), call.argument(index));
            shared.observers.tracking.note(shared.ways(), key, call.session.id, key_count_max);
        }
    }
}
