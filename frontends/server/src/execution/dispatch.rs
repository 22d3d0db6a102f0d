//! The path from a request to its command: checks memory, queues the request in a transaction, and shows it to
//! monitors.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use resp::Request;

use super::call::Call;
use super::client::{self, Client};
use super::needs::{self, makes_collections};
use crate::commands::functions;
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::observers::announcements::Announcement;
use crate::observers::events::NEW;
use crate::observers::notify;
use crate::reclaimer;
use command_table::{Entry, flag};

/// Maximum bytes of queued requests in one transaction: the length of the longest request.
const QUEUED_BYTES_MAX: usize = resp::Limits::REQUEST_BYTES_MAX;

impl Client<'_> {
    /// Executes or queues an admitted request and writes the reply. A refusal replaces anything the command has
    /// written, so there is exactly one reply.
    pub(crate) fn answer(&mut self, entry: Entry, request: Request<'_>, output: &mut Output) {
        let Client { shared, session, event_counts } = self;
        session.record.command.store(entry.number, Ordering::Relaxed);
        event_counts.batch.add_requests(entry.kind(), 1);
        let reply = output.reply(session.protocol);
        let start = reply.len_bytes();
        let (pending, announcements) = (None, None);
        let mut call = Call { shared, session, entry, request, reply, event_counts, pending, announcements };
        let (is_queued, is_silent) = (call.session.queues(entry), call.session.is_silent());
        let outcome = match call.client().check_memory(entry) {
            Err(refusal) => Err(call.reject(refusal)),
            Ok(()) if is_queued => call.queue(),
            Ok(()) => call.run(),
        };
        if !call.session.awaits_job {
            shared.serve_waiters();
        }
        if call.session.waiter().is_some() {
            return;
        }
        if call.session.needs_background {
            call.reply.truncate(start);
            return;
        }
        // A silent EXEC has written only messages.
        let has_messages =
            !is_queued && (entry.command.pushes() || entry.command.executes() && is_silent && outcome.is_ok());
        if let Err(refusal) = outcome {
            call.refuse(start, &refusal);
        }
        if !entry.command.is_about_clients() {
            call.session.forget_caching();
        }
        if !call.session.wants_reply() && !has_messages {
            call.reply.truncate(start);
        }
    }
}

impl Call<'_> {
    /// Records a refusal before the execution.
    #[cold]
    fn reject(&mut self, refusal: Refusal) -> Refusal {
        self.shared.counters_of(self.session).commands.note_rejected(self.entry.number);
        self.client().note_refused(&refusal);
        if self.entry.command.executes() {
            self.show_to_monitors();
        }
        refusal
    }

    /// Queues the request in the client's transaction. If that fails, the transaction is marked as broken.
    fn queue(&mut self) -> Result<(), Refusal> {
        let (command, request) = (self.entry.command, &self.request);
        let transaction = self.session.transaction.as_mut().expect("it is in one");
        let refusal = if command.has(flag::NO_MULTI) {
            FixedError::NotInTransaction
        } else if transaction.requests.capacity_bytes() > QUEUED_BYTES_MAX {
            FixedError::TransactionTooLong
        } else {
            transaction.needs_memory |= command.has(flag::DENYOOM);
            transaction.makes_collections |= makes_collections(self.entry, request);
            transaction.changes |= command.has_visible_effects();
            transaction.runs_scripts |= command.runs_scripts();
            transaction.ends_messages |= command.ends_messages();
            transaction.requests.push_copy(request);
            self.reply.simple("QUEUED");
            return Ok(());
        };
        transaction.is_broken = true;
        Err(refusal.into())
    }

    /// Replaces the output from `start` on by a refusal.
    #[cold]
    pub(super) fn refuse(&mut self, start: usize, refusal: &Refusal) {
        let entry = self.entry;
        let text = self.client().note_failed(entry, refusal);
        self.reply.truncate(start);
        self.reply.error(&text);
    }

    /// Executes the request and returns the outcome. The caller holds a pass, or exclusive access if the command needs
    /// it.
    pub(crate) fn run(&mut self) -> Result<(), Refusal> {
        let (entry, shared) = (self.entry, self.shared);
        if let Some(what) = needs::missing(entry.command.policy.needs, &shared.keyspace.features) {
            shared.counters_of(self.session).commands.note_rejected(entry.number);
            return Err(hikv::Error::Unsupported { engine: shared.keyspace.engine.name(), what }.into());
        }
        let is_read = entry.command.has(flag::READONLY) && !entry.command.has(flag::SCRIPT);
        // Of a script, only its commands count, as in Redis.
        if is_read && self.session.tracks.is_some_and(|tracks| tracks.is_tracking()) {
            self.track();
        }
        let began = Instant::now();
        let outcome = self.execute();
        if self.session.needs_background {
            // It will run again.
            return outcome;
        }
        let took = self.note_run(began);
        if shared.keyspace.collections.pace.is_behind() {
            help_reclaimer(self, took);
        }
        // After execution, as in Redis: EXEC is shown after its commands, and SELECT with the database that it
        // selected.
        self.show_to_monitors();
        outcome
    }

    /// Executes the command's function, and reports the keys that it creates.
    pub(super) fn execute(&mut self) -> Result<(), Refusal> {
        let (entry, shared) = (self.entry, self.shared);
        let reports_new =
            shared.administration.settings.notified_classes() & NEW != 0 && entry.command.has(flag::WRITE);
        let absent = if reports_new { self.absent_keys()? } else { Vec::new() };
        let outcome = match functions::of(entry) {
            Some(function) => self.apply(function),
            None => Err(Refusal::ArgumentCount { command: entry.command.name }),
        };
        if matches!(outcome, Err(Refusal::TooLongForLoop)) {
            self.session.needs_background = true;
            return outcome;
        }
        for index in absent {
            if self.contains(index)? {
                self.report(NEW, "new", index);
            }
        }
        outcome.map_err(|refusal| {
            shared.counters_of(self.session).commands.note_failed(entry.number);
            client::in_client_terms(refusal, entry, &self.request, self.namespace())
        })
    }

    /// Records the duration of the command's function, and returns it.
    fn note_run(&mut self, began: Instant) -> Duration {
        let (entry, took) = (self.entry, began.elapsed());
        if self.pending.is_none() {
            // Inside a transaction the time counts as part of EXEC.
            self.event_counts.add_time(entry.kind(), took);
        }
        let request = self.request;
        self.client().note_time(entry, &request, took);
        self.shared.counters_of(self.session).commands.note(entry.number, 1, took);
        took
    }

    #[inline]
    fn show_to_monitors(&mut self) {
        let (entry, request) = (self.entry, self.request);
        self.client().show_to_monitors(entry, &request);
    }

    /// Returns the indices of the arguments that are keys the request may create.
    #[cold]
    fn absent_keys(&self) -> Result<Vec<usize>, Refusal> {
        let mut absent = Vec::new();
        for (index, _) in self.entry.command.keys_of(&self.request).filter(|(_, access)| access.writes()) {
            if !self.contains(index)? {
                absent.push(index);
            }
        }
        Ok(absent)
    }

    /// Registers the keys that a tracking client is about to read.
    fn track(&self) {
        for (index, _) in self.entry.command.keys_of(&self.request) {
            let (raw, key) = (self.key(index), self.argument(index));
            notify::track(self.shared, (&raw, key), self.session.id);
            if let Some(announcements) = self.announcements {
                announcements.add(Announcement::Tracked { raw: raw.into_owned(), key: key.to_vec() });
            }
        }
    }
}

/// Does a part of the work of the thread that deletes dead collections, unless the request changes nothing or is a part
/// of another one.
#[cold]
fn help_reclaimer(call: &Call<'_>, took: Duration) {
    let command = call.entry.command;
    let writes = command.has(flag::WRITE) || command.executes() || command.runs_scripts();
    if writes && call.pending.is_none() && !call.session.awaits_job {
        reclaimer::help(call.shared, took);
    }
}
