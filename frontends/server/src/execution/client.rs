//! A client whose requests are executed: the checks that apply to every command, and the bookkeeping afterwards.

use std::time::{Duration, Instant};

use hikv::{Error, Limits};
use resp::Request;

use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::keyspace::namespace::Namespace;
use crate::shared::Shared;
use crate::telemetry::EventCounts;
use acl::{Context, LogEntry, Reason};
use command_table::Kind;
use command_table::{self as table, Entry, flag};

/// A client during a turn, or during its background job.
pub(crate) struct Client<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    /// Counts of the turn's requests.
    pub(crate) event_counts: &'a mut EventCounts,
}

impl Client<'_> {
    /// Returns whether the client is still served, that is, neither killed nor without its user; refreshes its rights.
    #[inline]
    pub(crate) fn is_still_served(&mut self) -> bool {
        let is_still_served =
            !self.session.record.is_killed() && self.shared.administration.acl.refresh(&mut self.session.login);
        if !is_still_served {
            self.session.closing = true;
        }
        is_still_served
    }

    /// Refuses a command that needs memory when the limit is reached.
    pub(crate) fn check_memory(&mut self, entry: Entry) -> Result<(), Refusal> {
        let executes = entry.command.executes();
        let needs_memory = match &self.session.transaction {
            Some(transaction) if executes => transaction.needs_memory,
            _ => entry.command.has(flag::DENYOOM),
        };
        if !needs_memory || !self.is_out_of_memory() {
            return Ok(());
        }
        let Client { shared, session, .. } = self;
        if executes {
            session.transaction = None;
            session.unwatch(&shared.observers.watches);
            return Err(FixedError::ExecOutOfMemory.into());
        }
        Err(FixedError::OutOfMemory.into())
    }

    /// Returns whether the memory limit is reached.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let bytes_max = self.shared.administration.settings.memory_bytes_max();
        self.shared.keyspace.memory.is_over(&self.shared.keyspace.store, bytes_max)
    }

    /// Shows the request to `MONITOR` clients. Exception: administrative commands are not shown.
    #[inline]
    pub(crate) fn show_to_monitors(&self, entry: Entry, request: &Request<'_>) {
        let monitors = &self.shared.observers.monitors;
        if !monitors.is_empty() && !entry.command.has(flag::ADMIN | flag::SKIP_MONITOR) {
            monitors.show(&self.shared.mailboxes, entry, self.session, request);
        }
    }

    /// Records how long a request took, if the slow log or the latency monitor is on.
    pub(crate) fn note_time(&self, entry: Entry, request: &Request<'_>, took: Duration) {
        let Client { shared, session, .. } = self;
        if !entry.command.has(flag::SKIP_SLOWLOG) {
            shared.telemetry.slowlog.note(&shared.administration, session, request, (entry.command, took));
        }
        let event = if entry.command.has(flag::FAST) { "fast-command" } else { "command" };
        shared.telemetry.latency.note(&shared.administration.settings, event, took);
    }

    /// Records that an executed request failed, and returns the error for its client.
    #[cold]
    pub(crate) fn note_failed(&mut self, entry: Entry, refusal: &Refusal) -> Vec<u8> {
        if refusal.is_counted() {
            return refusal.text();
        }
        self.event_counts.add_error(entry.kind());
        self.shared.administration.log.refused(refusal);
        if let Refusal::Store(error) = refusal {
            self.shared.telemetry.space.note(error, &self.shared.keyspace.store);
        }
        let text = refusal.text();
        self.shared.telemetry.errors.note(&text);
        text
    }

    /// Records a refusal before the execution: it breaks a transaction, and may be added to the ACL log.
    pub(crate) fn note_refused(&mut self, refusal: &Refusal) {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.is_broken = true;
        }
        if let Refusal::Denied { reason, object, .. } = refusal {
            self.log_denied(*reason, object.clone(), self.session.login.name().to_owned());
        }
    }

    pub(crate) fn log_denied(&self, reason: Reason, object: Vec<u8>, user: String) {
        let context = match () {
            () if self.session.runs_script => Context::Script,
            () if self.session.transaction.is_some() || self.session.is_executing => Context::Transaction,
            () => Context::TopLevel,
        };
        self.shared.administration.acl.log.add(LogEntry {
            number: 0,
            count: 1,
            reason,
            context,
            object,
            user,
            at: Instant::now(),
            client: self.session.record.line(),
        });
    }

    /// Answers a request that its client may not send.
    pub(crate) fn refuse(&mut self, refusal: Refusal, request: &Request<'_>, output: &mut Output) {
        if let Some(entry) = table::find(request).ok().or_else(|| table::by_name(request.name())) {
            self.shared.counters_of(self.session).commands.note_rejected(entry.number);
        }
        let refusal = self.end_refused(refusal, request);
        self.event_counts.batch.add_requests(Kind::Other, 1);
        self.event_counts.add_error(Kind::Other);
        self.note_refused(&refusal);
        self.session.forget_caching();
        let text = refusal.text();
        self.shared.telemetry.errors.note(&text);
        if self.session.wants_reply() {
            output.reply(self.session.protocol).error(&text);
        }
    }

    /// Adapts the refusal of an EXEC, which also discards the transaction, as in Redis. Any other refusal is returned
    /// unchanged.
    fn end_refused(&mut self, refusal: Refusal, request: &Request<'_>) -> Refusal {
        let executes = |entry: &Entry| entry.command.executes();
        let Some(entry) = table::by_name(request.name()).filter(executes) else { return refusal };
        self.note_refused(&refusal);
        self.session.transaction = None;
        self.session.unwatch(&self.shared.observers.watches);
        self.show_to_monitors(entry, request);
        let text = refusal.text();
        let why = String::from_utf8_lossy(text.strip_prefix(b"ERR ").unwrap_or(&text)).into_owned();
        Refusal::ExecAbort(why)
    }
}

/// Converts a store error. The store's keys are longer than the client's, so the reply states the client's key length.
#[cold]
pub(crate) fn in_client_terms(refusal: Refusal, entry: Entry, request: &Request<'_>, namespace: Namespace) -> Refusal {
    let Refusal::Store(Error::KeyTooLong { .. }) = refusal else { return refusal };
    let keys = entry.command.keys_of(request).map(|(index, _)| request.argument(index));
    let too_long =
        keys.map(|key| (key, namespace.raw(key).len())).find(|(_, raw_bytes)| *raw_bytes > Limits::KEY_BYTES_MAX);
    too_long.map_or(refusal, |(key, raw_bytes)| Refusal::KeyLength {
        len_bytes: key.len(),
        len_bytes_max: Limits::KEY_BYTES_MAX - (raw_bytes - key.len()),
    })
}
