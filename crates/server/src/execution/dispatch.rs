//! The path from a request to its command: checks memory, queues the request in a transaction, and shows it to
//! monitors.

use std::sync::atomic::Ordering;
use std::time::Instant;

use resp::Request;

use super::accounts;
use super::call::Call;
use super::permission;
use crate::clients::session::Session;
use crate::commands::functions;
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::observers::announcements::Announcement;
use crate::observers::events::NEW;
use crate::observers::notify;
use crate::shared::Shared;
use crate::table::{Entry, flag};
use crate::telemetry::EventCounts;

/// Maximum bytes of queued requests in one transaction: the length of the longest request.
const QUEUED_BYTES_MAX: usize = resp::Limits::REQUEST_BYTES_MAX;

/// An admitted request that is being executed.
pub(crate) struct Execution<'e, 'c> {
    entry: Entry,
    call: &'e mut Call<'c>,
}

impl<'e, 'c> Execution<'e, 'c> {
    /// Creates the execution of a request that names the command of `entry`.
    pub(crate) fn new(entry: Entry, call: &'e mut Call<'c>) -> Execution<'e, 'c> {
        Execution { entry, call }
    }

    /// Answers an admitted request.
    pub(crate) fn answered(
        entry: Entry,
        request: Request<'_>,
        session: &mut Session,
        shared: &Shared,
        output: &mut Output,
        event_counts: &mut EventCounts,
    ) {
        let reply = output.reply(session.protocol);
        let (pending, announcements) = (None, None);
        let mut call = Call { shared, session, request, reply, event_counts, pending, announcements };
        Execution::new(entry, &mut call).answer();
    }

    /// Executes or queues the request and writes the reply. A refusal replaces anything the command has written, so
    /// there is exactly one reply.
    fn answer(mut self) {
        self.call.session.record.command.store(self.entry.number, Ordering::Relaxed);
        self.call.event_counts.batch.add_requests(self.entry.kind(), 1);
        let start = self.call.reply.len_bytes();
        if let Err(refusal) = self.outcome() {
            self.refuse(start, &refusal);
        }
        if !self.entry.command.is_about_clients() {
            self.call.session.forget_caching();
        }
        if !self.call.session.wants_reply() && !self.entry.command.pushes() {
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

    /// Queues the request in the client's transaction. If that fails, the transaction is marked as broken.
    fn queue(&mut self) -> Result<(), Refusal> {
        let (command, request) = (self.entry.command, &self.call.request);
        let transaction = self.call.session.transaction.as_mut().expect("it is in one");
        let refusal = if command.has(flag::NO_MULTI) {
            FixedError::NotInTransaction
        } else if transaction.requests.capacity_bytes() > QUEUED_BYTES_MAX {
            FixedError::TransactionTooLong
        } else {
            transaction.needs_memory |= command.has(flag::DENYOOM);
            transaction.changes |= command.has_visible_effects();
            transaction.ends_messages |= command.ends_messages();
            transaction.requests.push_copy(request);
            self.call.reply.simple("QUEUED");
            return Ok(());
        };
        transaction.is_broken = true;
        Err(refusal.into())
    }

    /// Replaces the output from `start` on by a refusal.
    #[cold]
    fn refuse(&mut self, start: usize, refusal: &Refusal) {
        let Call { shared, event_counts, reply, .. } = &mut *self.call;
        let text = accounts::note_refusal(refusal, self.entry, shared, event_counts);
        reply.truncate(start);
        reply.error(&text);
    }

    /// Executes the request and returns the outcome. The caller holds a pass, or exclusive access if the command needs
    /// it.
    pub(crate) fn run(&mut self) -> Result<(), Refusal> {
        let (entry, shared) = (self.entry, self.call.shared);
        accounts::check_engine(entry, self.call.session, shared)?;
        if self.call.session.tracks.is_some_and(|tracks| tracks.remembers()) && entry.command.has(flag::READONLY) {
            self.track();
        }
        let reports_new =
            shared.administration.settings.notified_classes() & NEW != 0 && entry.command.has(flag::WRITE);
        let absent = if reports_new { self.absent_keys()? } else { Vec::new() };
        let outcome = self.apply();
        // After execution, as in Redis: EXEC is shown after its commands, and SELECT with the database that it
        // selected.
        accounts::show_to_monitors(entry, self.call.session, &self.call.request, shared);
        self.track_absent(&absent)?;
        outcome.map_err(|refusal| {
            accounts::counters(shared, self.call.session).note_failed(entry.number);
            accounts::in_client_terms(refusal, entry, &self.call.request, self.call.namespace())
        })
    }

    /// Calls the command's function and records its duration.
    fn apply(&mut self) -> Result<(), Refusal> {
        let began = Instant::now();
        let outcome = match functions::of(self.entry) {
            Some(function) => function(self.call),
            None => Err(Refusal::ArgumentCount { command: self.entry.command.name }),
        };
        let took = began.elapsed();
        if self.call.pending.is_none() {
            // Inside a transaction the time counts as part of EXEC.
            self.call.event_counts.add_time(self.entry.kind(), took);
        }
        let Call { shared, session, request, .. } = &*self.call;
        accounts::note_time(self.entry, session, request, shared, took);
        accounts::counters(shared, session).note(self.entry.number, 1, took);
        outcome
    }

    /// Returns the indices of the arguments that are keys the request may create.
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

    fn track_absent(&self, absent: &[usize]) -> Result<(), Refusal> {
        for index in absent {
            if self.call.store().contains(self.call.key(*index))? {
                self.call.report(NEW, "new", *index);
            }
        }
        Ok(())
    }

    /// Registers the keys that a tracking client is about to read.
    fn track(&self) {
        let call = &*self.call;
        for (index, _) in self.entry.command.keys_of(&call.request) {
            let (raw, key) = (call.key(index), call.argument(index));
            notify::track(call.shared, (&raw, key), call.session.id);
            if let Some(announcements) = call.announcements {
                announcements.add(Announcement::Tracked { raw: raw.into_owned(), key: key.to_vec() });
            }
        }
    }
}
