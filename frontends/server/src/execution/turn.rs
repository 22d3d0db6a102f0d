//! One turn of a connection: executes pipelined requests while the output has space.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;

use resp::{Request, Requests};

use super::background::job::{BackgroundJob, JobThread};
use super::background::weight;
use super::changes::Changes;
use super::client::Client;
use super::cross_protocol;
use super::gate::Pass;
use super::panics::{self, CaughtPanic};
use super::permission;
use super::pipeline::{Pipeline, Progress};
use super::reads::Reads;
use super::updates::Updates;
use super::worker::Worker;
use super::writes::Puts;
use crate::clients::session::{Receipt, Session};
use crate::connections::output::Output;
use crate::errors::{FixedError, Refusal};
use crate::messages::LoopMessage;
use crate::telemetry::{BatchCounts, EventCounts};
use command_table::{Action, Entry, Kind, flag};

/// A turn of a connection.
struct Turn<'t> {
    client: Client<'t>,
    output: &'t mut Output,
    worker: &'t Worker<'t>,
    requests: &'t Requests,
    /// The input that the requests were parsed from.
    input: &'t [u8],
    progress: &'t mut Progress,
    /// Output position where this step's replies begin.
    start: usize,
    /// `None` only while this turn has exclusive access.
    pass: Option<Pass<'t>>,
}

impl Pipeline {
    /// Executes requests until none is left or the output is full, and returns counts of them; `input` is the input
    /// they were parsed from.
    pub(crate) fn run(
        &mut self,
        input: &[u8],
        session: &mut Session,
        worker: &Worker<'_>,
        output: &mut Output,
    ) -> BatchCounts {
        let Pipeline { requests, progress, protocol_error, .. } = self;
        let (first, shared) = (progress.cursor.request, worker.shared);
        let mut event_counts = EventCounts::default();
        let pass = Some(shared.gate.pass(worker.lane));
        session.is_postponed = false;
        let start = output.end();
        let client = Client { shared, session: &mut *session, event_counts: &mut event_counts };
        let mut turn = Turn { client, output: &mut *output, worker, requests, input, progress, start, pass };
        if let Err(caught) = panics::catch(|| {
            while turn.continues() {
                turn.step()
            }
        }) {
            turn.abandon(&caught);
        }
        drop(turn);
        event_counts.commands = (progress.cursor.request - first) as u64;
        worker.counters.add(event_counts);
        shared.observers.tracking.announce(shared.message_access());
        // Not before the reply of a background job that the client waits for.
        if progress.cursor.request == requests.len()
            && session.can_execute()
            && !output.is_full()
            && let Some(protocol_error) = protocol_error.take()
        {
            output.reply(session.protocol).error(&Refusal::Protocol(protocol_error).text());
            session.closing = true;
        }
        event_counts.batch
    }
}

impl Turn<'_> {
    fn continues(&self) -> bool {
        self.progress.cursor.request < self.requests.len()
            && !self.output.is_full()
            && self.client.session.can_execute()
    }

    /// Returns whether another request follows the one at the cursor.
    fn has_next(&self) -> bool {
        self.progress.cursor.request + 1 < self.requests.len()
    }

    /// Executes the request at the cursor, alone or with those that follow, or has it wait.
    fn step(&mut self) {
        self.start = self.output.end();
        if !self.client.is_still_served() {
            return;
        }
        let request = self.requests.get(self.progress.cursor.request, self.input);
        let entry = match permission::admit(&request, self.client.session) {
            Ok(entry) => entry,
            Err(refusal) => return self.refuse(refusal, &request),
        };
        let may_wait = !self.client.shared.may_resume() || entry.command.policy.when.may_end_messages();
        if may_wait && self.must_wait(entry) {
            return;
        }
        if self.client.shared.scripts.is_held() && self.must_wait_for_script(entry, &request) {
            return;
        }
        let Client { shared, session, .. } = &self.client;
        // A partly answered read of many keys continues, whatever has changed since it began.
        let continues = self.progress.is_within_reply();
        let may_be_blocked = !continues && session.may_use_background && shared.gate.has_claim();
        let is_blocked = may_be_blocked && shared.gate.blocks(entry, &request, session);
        let may_read = || session.is_plain() && shared.observers.monitors.is_empty() && !is_blocked;
        if entry.command.is_read() && (continues || may_read()) {
            return self.read(entry);
        }
        let thread =
            if is_blocked { Some(JobThread::Shared) } else { weight::thread_for(entry, &request, session, shared) };
        if let Some(thread) = thread {
            self.move_to_background(thread, entry);
        } else if entry.command.runs_alone() && !session.queues(entry)
            || shared.needs_collections(entry, &request, session)
        {
            self.run_alone(entry, request);
        } else if !(self.has_next() && self.execute_group(entry)) {
            self.answer(entry, request);
        }
    }

    /// Executes the request at the cursor, unless it turns out to take long.
    fn answer(&mut self, entry: Entry, request: Request<'_>) {
        self.client.answer(entry, request, self.output);
        if mem::take(&mut self.client.session.needs_background) {
            self.move_to_background(JobThread::Shared, entry);
        } else {
            self.progress.cursor.request += 1;
        }
    }

    /// Executes the request at the cursor in a group with those that follow, if its command has groups and they are
    /// similar; returns whether it did.
    fn execute_group(&mut self, entry: Entry) -> bool {
        match entry.command.action {
            Action::Put => self.put_group(entry),
            Action::Update => self.update_group(entry),
            Action::Change => self.change_group(entry),
            Action::Apply | Action::Read(_) | Action::Subcommands => false,
        }
    }

    /// Answers a request that its client may not send.
    #[cold]
    fn refuse(&mut self, refusal: Refusal, request: &Request<'_>) {
        if self.progress.is_within_reply() {
            // The client has lost its right to the read. The started array can neither continue nor become an error.
            self.client.note_refused(&refusal);
            self.client.session.closing = true;
            return;
        }
        if !cross_protocol::ends(request.name(), &mut self.client) {
            self.client.refuse(refusal, request, self.output);
        }
        self.progress.cursor.request += 1;
    }

    /// Returns whether the request waits: for the end of a pause, for space in the mailboxes, or until its client has
    /// received its messages.
    fn must_wait(&mut self, entry: Entry) -> bool {
        let Client { shared, session, .. } = &mut self.client;
        let may_send = || session.changes_by(entry) || !shared.observers.monitors.is_empty();
        if shared.pause.holds(entry, session) || shared.mailboxes.holds(may_send) {
            session.is_postponed = true;
            return true;
        }
        if !session.may_miss_messages(entry) {
            return false;
        }
        session.receipt = Receipt::Awaited;
        let place = session.record.place;
        shared.mailboxes.send_to_loop(place.loop_index, LoopMessage::AllReceived(place));
        true
    }

    /// Returns whether the request waits for a script that runs in the background, or is refused because of it.
    #[cold]
    fn must_wait_for_script(&mut self, entry: Entry, request: &Request<'_>) -> bool {
        let Client { shared, session, .. } = &mut self.client;
        if self.progress.is_within_reply() || !session.may_use_background {
            return false;
        }
        if !shared.scripts.is_busy() {
            session.is_postponed = shared.gate.blocks(entry, request, session);
            return session.is_postponed;
        }
        let is_refused = !entry.command.has(flag::ALLOW_BUSY);
        if is_refused {
            self.refuse(FixedError::Busy.into(), request);
        }
        is_refused
    }

    /// Moves the request at the cursor to the background.
    fn move_to_background(&mut self, thread: JobThread, entry: Entry) {
        let (number, woke) = (self.progress.cursor.request, self.worker.woke);
        self.client.session.await_job(BackgroundJob { thread, entry, number, woke });
        self.progress.cursor.request += 1;
    }

    /// Executes the request at the cursor with exclusive access, unless a new background job blocks it. If the request
    /// is no longer permitted, the next step reports why.
    fn run_alone(&mut self, entry: Entry, request: Request<'_>) {
        let gate = &self.worker.shared.gate;
        self.pass = None;
        let needs_collections = self.client.shared.needs_collections(entry, &request, self.client.session);
        // A background job would not know that its keys may become collections.
        let alone = if needs_collections { gate.close_to_all() } else { gate.close() };
        if !self.is_still_admitted(entry, &request) {
            // The next step answers it.
        } else if self.client.shared.scripts.is_held() && self.must_wait_for_script(entry, &request) {
            // It waits, or was refused.
        } else if self.client.session.may_use_background && gate.blocks(entry, &request, self.client.session) {
            self.move_to_background(JobThread::Shared, entry);
        } else if needs_collections && let Err(refusal) = self.client.shared.begin_collections() {
            self.refuse(refusal, &request);
        } else {
            self.answer(entry, request);
        }
        drop(alone);
        self.pass = Some(gate.pass(self.worker.lane));
    }

    /// Returns whether a request that has waited for exclusive access is still permitted.
    fn is_still_admitted(&mut self, entry: Entry, request: &Request<'_>) -> bool {
        self.client.is_still_served()
            && permission::admit(request, self.client.session).is_ok()
            && !self.client.shared.pause.holds(entry, self.client.session)
    }

    /// Executes the request at the cursor together with those that follow, if they are similar puts; returns whether it
    /// did.
    fn put_group(&mut self, entry: Entry) -> bool {
        let puts = Puts::gather(entry, self.requests, self.input, self.progress.cursor.request, &self.client);
        let Some(count) = puts.and_then(|puts| puts.execute(&mut self.client, self.output)) else { return false };
        self.client.session.record.command.store(entry.number, Ordering::Relaxed);
        self.progress.cursor.request += count;
        true
    }

    /// Does the same for updates of single keys.
    fn update_group(&mut self, entry: Entry) -> bool {
        let first = self.progress.cursor.request;
        let updates = Updates::gather(entry, self.requests, self.input, first, &mut self.client);
        let Some(updates) = updates else { return false };
        self.client.session.record.command.store(entry.number, Ordering::Relaxed);
        let began = Instant::now();
        updates.prefetch(&self.client);
        for request in updates.requests() {
            self.start = self.output.end();
            updates.answer(request, &mut self.client, self.output);
            self.progress.cursor.request += 1;
        }
        updates.note(began.elapsed(), &mut self.client);
        true
    }

    /// Does the same for changes of collections.
    fn change_group(&mut self, entry: Entry) -> bool {
        let first = self.progress.cursor.request;
        let changes = Changes::gather(entry, self.requests, self.input, first, &mut self.client);
        let Some(count) = changes.and_then(|changes| changes.execute(&mut self.client, self.output)) else {
            return false;
        };
        self.client.session.record.command.store(entry.number, Ordering::Relaxed);
        self.progress.cursor.request += count;
        true
    }

    /// Answers a group of reads, from the cursor on.
    fn read(&mut self, entry: Entry) {
        self.client.session.record.command.store(entry.number, Ordering::Relaxed);
        let (first, began) = (self.progress.cursor, Instant::now());
        let reads = Reads::gather(self.requests, self.input, first, &self.client);
        self.progress.cursor = reads.answer(&mut self.client, self.output);
        let cursor = self.progress.cursor;
        let (took, before) = (began.elapsed(), mem::take(&mut self.progress.spent));
        self.client.event_counts.add_time(Kind::Get, took);
        let count = cursor.request - first.request;
        if count > 0 {
            self.client.event_counts.batch.add_requests(Kind::Get, count);
            reads.note(count, before, took, &self.client);
        }
        if cursor.key > 0 {
            self.progress.spent = if count > 0 { took } else { before + took };
        }
    }

    /// Ends the turn of a client whose request at the cursor has panicked.
    #[cold]
    fn abandon(&mut self, caught: &CaughtPanic) {
        let request = self.requests.get(self.progress.cursor.request, self.input);
        self.client.abandon(caught, &request, self.output, self.start);
        self.progress.cursor.request += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use hikv::Store;
    use resp::{Limits, Parser};

    use super::*;
    use crate::clients::Record;
    use crate::connections::buffers::Buffers;
    use crate::execution::background::BackgroundJobs;
    use crate::shared::Shared;
    use crate::testing;
    use acl::User;

    /// Runs `change` after the server has admitted RENAME and before RENAME has exclusive access. Returns whether
    /// RENAME was executed, and the session.
    fn renamed(change: impl FnOnce(&Shared, &Record)) -> (bool, Session) {
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), testing::session(server.shared()));
        let store: &Store = &shared.keyspace.store;
        store.put("k", "v").expect("the store takes it");
        let record = Arc::clone(&session.record);
        thread::scope(|scope| {
            let first_lane = shared.gate.pass(0);
            scope.spawn(|| {
                let counters = &shared.telemetry.loops[1];
                let (background, mut buffers) = (BackgroundJobs::default(), Buffers::default());
                let (woke, background, buffers) = (Instant::now(), &background, &mut buffers);
                let worker = Worker { shared, background, lane: 1, counters, woke, buffers };
                let (mut pipeline, mut output) = (Pipeline::default(), Output::default());
                let input = b"SET begun 1\r\nRENAME k l\r\n";
                pipeline.parse(&mut Parser::new(Limits::default()), input, false);
                pipeline.run(input, &mut session, &worker, &mut output);
            });
            while !store.contains("begun").expect("the store answers") {
                thread::yield_now();
            }
            // The loop releases its lane after the first check.
            drop(shared.gate.pass(1));
            change(shared, &record);
            drop(first_lane);
        });
        (store.contains("l").expect("the store answers"), session)
    }

    fn forbid(shared: &Shared, _: &Record) {
        let user = shared.administration.acl.user("default").expect("it is there");
        let mut user = User::clone(&user);
        user.apply(b"-rename").expect("a rule");
        shared.administration.acl.put(user);
    }

    #[test]
    fn requests_are_judged_again_once_alone() {
        let (is_renamed, session) = renamed(|_, _| {});
        assert!(is_renamed && !session.closing, "nothing has changed");
        let (is_renamed, session) = renamed(|_, record| record.kill());
        assert!(!is_renamed && session.closing, "killed");
        let (is_renamed, session) = renamed(forbid);
        assert!(!is_renamed && !session.closing, "forbidden");
        let (is_renamed, session) = renamed(|shared, _| shared.pause.begin(Duration::from_secs(60), false));
        assert!(!is_renamed && session.is_postponed, "paused");
    }
}
