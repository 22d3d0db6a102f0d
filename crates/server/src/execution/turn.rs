//! One turn of a connection: executes pipelined requests while the output has space.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;

use resp::Request;

use super::background::job::{BackgroundJob, JobThread};
use super::background::weight;
use super::cross_protocol;
use super::dispatch::Execution;
use super::gate::Pass;
use super::panics::{self, Abandoned, Caught};
use super::permission;
use super::pipeline::Pipeline;
use super::reads::Reads;
use super::worker::Worker;
use super::writes::Puts;
use crate::clients::session::{Receipt, Session};
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::messages::LoopMessage;
use crate::shared::Shared;
use crate::table::Entry;
use crate::telemetry::{BatchCounts, EventCounts, Kind};

/// The arguments of a turn.
struct Turn<'t, 'g> {
    /// The input that the requests were parsed from.
    input: &'t [u8],
    session: &'t mut Session,
    worker: &'t Worker<'g>,
    output: &'t mut Output,
    event_counts: EventCounts,
    /// Output position where this step's replies begin.
    start: usize,
    /// `None` only while this turn has exclusive access.
    pass: Option<Pass<'g>>,
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
        let first = self.cursor.request;
        let pass = Some(worker.shared.gate.pass(worker.lane));
        session.is_postponed = false;
        let start = output.end();
        let mut turn = Turn { input, session, worker, output, event_counts: EventCounts::default(), start, pass };
        if let Err(caught) = panics::catch(|| self.steps(&mut turn)) {
            self.abandon(&caught, &mut turn);
        }
        let Turn { session, output, mut event_counts, pass, .. } = turn;
        drop(pass);
        event_counts.commands = (self.cursor.request - first) as u64;
        worker.counters.add(event_counts);
        worker.shared.observers.tracking.announce(worker.shared.message_access());
        // Not before the reply of a background job that the client waits for.
        if self.cursor.request == self.requests.len() && session.can_execute() {
            self.report_protocol_error(session, output);
        }
        event_counts.batch
    }

    fn steps(&mut self, turn: &mut Turn<'_, '_>) {
        while self.cursor.request < self.requests.len() && !turn.output.is_full() && turn.session.can_execute() {
            turn.start = turn.output.end();
            self.step(turn);
        }
    }

    /// Ends the turn of a client whose request at the cursor has panicked.
    #[cold]
    fn abandon(&mut self, caught: &Caught, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, event_counts, start, .. } = turn;
        let request = self.requests.get(self.cursor.request, input);
        Abandoned { request, start: *start }.answer(caught, session, worker.shared, output, event_counts);
        self.cursor.request += 1;
    }

    fn step(&mut self, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, event_counts, .. } = turn;
        let shared = worker.shared;
        if !permission::is_still_served(session, shared) {
            return;
        }
        let first = self.cursor.request;
        let request = self.requests.get(first, input);
        let entry = match permission::admit(&request, session) {
            Ok(entry) => entry,
            Err(refusal) if self.is_within_reply() => {
                // The client has lost its right to the read. The started array can neither continue nor become an
                // error.
                permission::note_refused(&refusal, session, shared);
                session.closing = true;
                return;
            }
            Err(refusal) => {
                if !cross_protocol::ends(request.name(), session, shared) {
                    permission::refuse(refusal, &request, session, shared, output, event_counts);
                }
                self.cursor.request += 1;
                return;
            }
        };
        if shared.pause.holds(entry, session) || shared.mailboxes.holds(|| may_send(entry, session, shared)) {
            session.is_postponed = true;
            return;
        }
        if session.may_miss_messages(entry) {
            session.receipt = Receipt::Awaited;
            let place = session.record.place;
            shared.mailboxes.send_to_loop(place.loop_index, LoopMessage::AllReceived(place));
            return;
        }
        // A partly answered read of many keys continues, whatever has changed since it began.
        let continues = self.is_within_reply();
        let is_blocked = !continues && session.may_use_background && shared.gate.blocks(entry, &request, session);
        let may_read = || session.is_plain() && shared.observers.monitors.is_empty() && !is_blocked;
        if entry.command.is_read() && (continues || may_read()) {
            session.record.command.store(entry.number, Ordering::Relaxed);
            self.read(input, session, shared, output, event_counts);
            return;
        }
        let thread =
            if is_blocked { Some(JobThread::Shared) } else { weight::thread_for(entry, &request, session, shared) };
        if let Some(thread) = thread {
            self.move_to_background(thread, entry, session, worker.woke);
        } else if entry.command.runs_alone() && !session.queues(entry) {
            self.step_alone(entry, turn);
        } else {
            let puts = Puts::gather(entry, &self.requests, input, first, session, shared);
            if let Some(count) = puts.and_then(|puts| puts.execute(session, shared, output, event_counts)) {
                session.record.command.store(entry.number, Ordering::Relaxed);
                self.cursor.request += count;
                return;
            }
            Execution::answered(entry, request, session, shared, output, event_counts);
            self.cursor.request += 1;
        }
    }

    /// Moves the request at the cursor to the background.
    fn move_to_background(&mut self, thread: JobThread, entry: Entry, session: &mut Session, woke: Instant) {
        session.await_job(BackgroundJob { thread, entry, number: self.cursor.request, woke });
        self.cursor.request += 1;
    }

    /// Executes the request at the cursor with exclusive access, unless a new background job blocks it. If the request
    /// is no longer permitted, the next step reports why.
    fn step_alone(&mut self, entry: Entry, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, event_counts, pass, .. } = turn;
        let (shared, request) = (worker.shared, self.requests.get(self.cursor.request, input));
        *pass = None;
        let alone = shared.gate.close();
        if !is_still_admitted(entry, &request, session, shared) {
            // The next step answers it.
        } else if session.may_use_background && shared.gate.blocks(entry, &request, session) {
            self.move_to_background(JobThread::Shared, entry, session, worker.woke);
        } else {
            Execution::answered(entry, request, session, shared, output, event_counts);
            self.cursor.request += 1;
        }
        drop(alone);
        *pass = Some(shared.gate.pass(worker.lane));
    }

    /// Answers a group of reads, from the cursor on.
    fn read(
        &mut self,
        input: &[u8],
        session: &mut Session,
        shared: &Shared,
        output: &mut Output,
        event_counts: &mut EventCounts,
    ) {
        let (first, began) = (self.cursor.request, Instant::now());
        let reads = Reads::gather(&self.requests, input, self.cursor, session, shared);
        self.cursor = reads.answer(shared, session.protocol, output, event_counts);
        let (took, before) = (began.elapsed(), mem::take(&mut self.spent));
        event_counts.add_time(Kind::Get, took);
        let count = self.cursor.request - first;
        if count > 0 {
            event_counts.batch.add_requests(Kind::Get, count);
            reads.note(count, before, took, session, shared);
        }
        if self.cursor.key > 0 {
            self.spent = if count > 0 { took } else { before + took };
        }
    }

    fn report_protocol_error(&mut self, session: &mut Session, output: &mut Output) {
        if !output.is_full()
            && let Some(protocol_error) = self.protocol_error.take()
        {
            output.reply(session.protocol).error(&Refusal::Protocol(protocol_error).text());
            session.closing = true;
        }
    }
}

/// Returns whether a request that has waited for exclusive access is still permitted.
fn is_still_admitted(entry: Entry, request: &Request<'_>, session: &mut Session, shared: &Shared) -> bool {
    permission::is_still_served(session, shared)
        && permission::admit(request, session).is_ok()
        && !shared.pause.holds(entry, session)
}

/// Returns whether the request may send messages to other clients.
fn may_send(entry: Entry, session: &Session, shared: &Shared) -> bool {
    session.changes_by(entry) || !shared.observers.monitors.is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use hikv::Store;
    use resp::{Limits, Parser};

    use super::*;
    use crate::administration::acl::User;
    use crate::clients::Record;
    use crate::connections::buffers::Buffers;
    use crate::execution::background::BackgroundJobs;
    use crate::testing;

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
