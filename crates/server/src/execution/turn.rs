//! A turn of one connection: the requests of the pipeline are executed, as far as there is room for their replies.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::Instant;

use resp::Request;

use super::cross_protocol;
use super::dispatch::Execution;
use super::errands::errand::{Errand, Way};
use super::errands::weight;
use super::gate::Pass;
use super::panics::{self, Abandoned, Caught};
use super::permission;
use super::pipeline::Pipeline;
use super::reads::Reads;
use super::worker::Worker;
use super::writes::Puts;
use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::shared::Shared;
use crate::table::Entry;
use crate::telemetry::{BatchCounts, Kind, Tally};

/// What a turn works with.
struct Turn<'t, 'g> {
    /// What the requests were parsed from.
    input: &'t [u8],
    session: &'t mut Session,
    worker: &'t Worker<'g>,
    output: &'t mut Output,
    tally: Tally,
    /// Where the replies of this step begin.
    start: usize,
    /// None only while nobody else executes.
    pass: Option<Pass<'g>>,
}

impl Pipeline {
    /// Executes requests until none is left or the output is full, and says what they were; `input` is what they were parsed
    /// from.
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
        let mut turn = Turn { input, session, worker, output, tally: Tally::default(), start, pass };
        if let Err(caught) = panics::catch(|| self.steps(&mut turn)) {
            self.abandon(&caught, &mut turn);
        }
        let Turn { session, output, mut tally, pass, .. } = turn;
        drop(pass);
        tally.commands = (self.cursor.request - first) as u64;
        worker.counters.add(tally);
        worker.shared.observers.tracking.announce(worker.shared.ways());
        // Not before the reply of an errand that the client waits for.
        if self.cursor.request == self.requests.len() && session.goes_on() {
            self.report_breach(session, output);
        }
        tally.batch
    }

    fn steps(&mut self, turn: &mut Turn<'_, '_>) {
        while self.cursor.request < self.requests.len() && !turn.output.is_full() && turn.session.goes_on() {
            turn.start = turn.output.end();
            self.step(turn);
        }
    }

    /// Ends the turn of a client whose request at the cursor has panicked.
    #[cold]
    fn abandon(&mut self, caught: &Caught, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, tally, start, .. } = turn;
        let request = self.requests.get(self.cursor.request, input);
        Abandoned { request, start: *start }.answer(caught, session, worker.shared, output, tally);
        self.cursor.request += 1;
    }

    fn step(&mut self, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, tally, .. } = turn;
        let shared = worker.shared;
        if !permission::stays(session, shared) {
            return;
        }
        let first = self.cursor.request;
        let request = self.requests.get(first, input);
        let entry = match permission::admit(&request, session) {
            Ok(entry) => entry,
            Err(refusal) if self.is_within_reply() => {
                // Its right was taken away. The array that has begun can neither go on nor be replaced by an error.
                permission::note_refused(&refusal, session, shared);
                session.closing = true;
                return;
            }
            Err(refusal) => {
                if !cross_protocol::ends(request.name(), session, shared) {
                    permission::refuse(refusal, &request, session, shared, output, tally);
                }
                self.cursor.request += 1;
                return;
            }
        };
        if shared.pause.holds(entry, session) || shared.post.holds(|| may_send(entry, session, shared)) {
            session.is_postponed = true;
            return;
        }
        // A read of many keys that is answered in part goes on, whatever has changed since it began.
        let goes_on = self.is_within_reply();
        let is_kept_out = !goes_on && session.may_be_away && shared.gate.keeps_out(entry, &request, session);
        let may_read = || session.is_plain() && shared.observers.monitors.is_empty() && !is_kept_out;
        if entry.command.is_read() && (goes_on || may_read()) {
            session.record.command.store(entry.number, Ordering::Relaxed);
            self.read(input, session, shared, output, tally);
            return;
        }
        let way = if is_kept_out { Some(Way::Queued) } else { weight::way_of(entry, &request, session, shared) };
        if let Some(way) = way {
            self.leave(way, entry, session, worker.woke);
        } else if entry.command.runs_alone() && !session.queues(entry) {
            self.step_alone(entry, turn);
        } else {
            let puts = Puts::gather(entry, &self.requests, input, first, session, shared);
            if let Some(count) = puts.and_then(|puts| puts.execute(session, shared, output, tally)) {
                session.record.command.store(entry.number, Ordering::Relaxed);
                self.cursor.request += count;
                return;
            }
            Execution::answered(entry, request, session, shared, output, tally);
            self.cursor.request += 1;
        }
    }

    /// Has the request at the cursor done beside the loop.
    fn leave(&mut self, way: Way, entry: Entry, session: &mut Session, woke: Instant) {
        session.leave_for(Errand { way, entry, number: self.cursor.request, woke });
        self.cursor.request += 1;
    }

    /// Executes the request at the cursor while nobody else does, unless an errand that has just begun keeps it out. If it may not be
    /// executed any more, the next step finds out why.
    fn step_alone(&mut self, entry: Entry, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, tally, pass, .. } = turn;
        let (shared, request) = (worker.shared, self.requests.get(self.cursor.request, input));
        *pass = None;
        let alone = shared.gate.close();
        if !is_still_admitted(entry, &request, session, shared) {
            // The next step answers.
        } else if session.may_be_away && shared.gate.keeps_out(entry, &request, session) {
            self.leave(Way::Queued, entry, session, worker.woke);
        } else {
            Execution::answered(entry, request, session, shared, output, tally);
            self.cursor.request += 1;
        }
        drop(alone);
        *pass = Some(shared.gate.pass(worker.lane));
    }

    /// Answers reads together, from the cursor on.
    fn read(&mut self, input: &[u8], session: &mut Session, shared: &Shared, output: &mut Output, tally: &mut Tally) {
        let (first, began) = (self.cursor.request, Instant::now());
        let reads = Reads::gather(&self.requests, input, self.cursor, session, shared);
        self.cursor = reads.answer(shared, session.protocol, output, tally);
        let (took, before) = (began.elapsed(), mem::take(&mut self.spent));
        tally.add_time(Kind::Get, took);
        let count = self.cursor.request - first;
        if count > 0 {
            tally.batch.add_requests(Kind::Get, count);
            reads.note(count, before, took, session, shared);
        }
        if self.cursor.key > 0 {
            self.spent = if count > 0 { took } else { before + took };
        }
    }

    fn report_breach(&mut self, session: &mut Session, output: &mut Output) {
        if !output.is_full()
            && let Some(breach) = self.breach.take()
        {
            output.reply(session.protocol).error(&Refusal::Protocol(breach).text());
            session.closing = true;
        }
    }
}

/// Whether the request may be executed still, which has waited until its client is alone.
fn is_still_admitted(entry: Entry, request: &Request<'_>, session: &mut Session, shared: &Shared) -> bool {
    permission::stays(session, shared)
        && permission::admit(request, session).is_ok()
        && !shared.pause.holds(entry, session)
}

/// Whether messages may come of a request.
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
    use crate::execution::errands::Errands;
    use crate::testing;

    /// The server has admitted RENAME, which waits until it is alone, when `change` happens. Returns whether RENAME was executed, and the
    /// session.
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
                let (errands, mut buffers) = (Errands::default(), Buffers::default());
                let (woke, errands, buffers) = (Instant::now(), &errands, &mut buffers);
                let worker = Worker { shared, errands, lane: 1, counters, woke, buffers };
                let (mut pipeline, mut output) = (Pipeline::default(), Output::default());
                let input = b"SET begun 1\r\nRENAME k l\r\n";
                pipeline.parse(&mut Parser::new(Limits::default()), input, false);
                pipeline.run(input, &mut session, &worker, &mut output);
            });
            while !store.contains("begun").expect("the store answers") {
                thread::yield_now();
            }
            // The loop gives its lane up behind the first judgement.
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
