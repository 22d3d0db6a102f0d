//! The requests that one connection sent together.
//!
//! They are executed in order, and stop at the first that fills the output; the rest waits here until that is sent.

use std::mem;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use resp::{Parser, ProtocolError, Request, Requests};

use crate::clients::session::Session;
use crate::connections::buffers::{Buffers, KEPT_BYTES_MAX};
use crate::connections::connection::Worker;
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::execution::call::Call;
use crate::execution::cross_protocol;
use crate::execution::dispatch;
use crate::execution::errands::{Errand, Way};
use crate::execution::gate::Pass;
use crate::execution::reads::Reads;
use crate::execution::writes::Puts;
use crate::shared::{Shared, Tally};
use crate::table::Entry;
use crate::telemetry::{BatchCounts, Kind};

/// Requests parsed at a time: several groups of reads, and little to hold for a client that does not read its replies.
const REQUEST_COUNT_MAX: usize = 128;

/// The next thing to execute.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) request: usize,
    /// Keys of that request that have been answered, if it is a read.
    pub(crate) key: usize,
}

/// What a turn works with.
struct Turn<'t, 'g> {
    /// What the requests were parsed from.
    input: &'t [u8],
    session: &'t mut Session,
    worker: &'t Worker<'g>,
    output: &'t mut Output,
    tally: Tally,
    /// None only while nobody else executes.
    pass: Option<Pass<'g>>,
}

#[derive(Default)]
pub(crate) struct Pipeline {
    requests: Requests,
    cursor: Cursor,
    /// What follows the requests and cannot be parsed.
    breach: Option<ProtocolError>,
    /// What the keys of the read at the cursor that are answered have taken.
    spent: Duration,
    parsed_bytes: usize,
}

impl Pipeline {
    /// Takes the loop's list of requests for a turn, if it has none that wait.
    pub(crate) fn borrow(&mut self, buffers: &mut Buffers) {
        if self.requests.is_empty() {
            self.requests = mem::take(&mut buffers.requests);
        }
    }

    /// Gives the loop's list back after a turn if nothing waits.
    pub(crate) fn give_back(&mut self, buffers: &mut Buffers) {
        if self.is_done() {
            let mut requests = mem::take(&mut self.requests);
            requests.clear();
            self.cursor = Cursor::default();
            if requests.capacity_bytes() <= KEPT_BYTES_MAX {
                buffers.requests = requests;
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.cursor.request == self.requests.len() && self.breach.is_none()
    }

    /// Forgets the requests that are done and returns how many bytes of input they were.
    pub(crate) fn restart(&mut self) -> usize {
        self.requests.clear();
        self.cursor = Cursor::default();
        mem::take(&mut self.parsed_bytes)
    }

    /// Finds the next requests in `input`. A client without a user may get one by the first of them, and is held to other limits
    /// until then.
    pub(crate) fn parse(&mut self, parser: &mut Parser, input: &[u8], is_stranger: bool) {
        let count_max = if is_stranger { 1 } else { REQUEST_COUNT_MAX };
        match parser.parse(input, &mut self.requests, count_max) {
            Ok(parsed_bytes) => self.parsed_bytes = parsed_bytes,
            Err(breach) => self.breach = Some(breach),
        }
    }

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
        let mut turn = Turn { input, session, worker, output, tally: Tally::default(), pass };
        while self.cursor.request < self.requests.len() && !turn.output.is_full() && turn.session.goes_on() {
            self.step(&mut turn);
        }
        let Turn { session, output, mut tally, pass, .. } = turn;
        drop(pass);
        tally.commands = (self.cursor.request - first) as u64;
        worker.counters.add(tally);
        // Not before the reply of an errand that the client waits for.
        if self.cursor.request == self.requests.len() && session.goes_on() {
            self.report_breach(session, output);
        }
        tally.batch
    }

    fn step(&mut self, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, tally, .. } = turn;
        let shared = worker.shared;
        if !shared.acl.refresh(&mut session.login) {
            // Its user was deleted.
            session.closing = true;
            return;
        }
        let first = self.cursor.request;
        let request = self.requests.get(first, input);
        let entry = match dispatch::admit(&request, session) {
            Ok(entry) => entry,
            Err(refusal) => {
                if !cross_protocol::ends(request.name(), session, shared) {
                    dispatch::note_rejected(&request, session, shared);
                    let refusal = dispatch::end_refused(refusal, &request, session, shared);
                    refuse(&refusal, session, shared, output, tally);
                }
                self.cursor.request += 1;
                return;
            }
        };
        if shared.pause.holds(entry, session) || shared.mail.holds(entry, session, shared) {
            session.is_postponed = true;
            return;
        }
        // A read of many keys that is answered in part goes on.
        let is_kept_out =
            self.cursor.key == 0 && session.may_be_away && shared.gate.keeps_out(entry, &request, session);
        if entry.command.is_read() && session.is_plain() && shared.monitors.is_empty() && !is_kept_out {
            session.record.command.store(entry.number, Ordering::Relaxed);
            self.read(input, session, shared, output, tally);
            return;
        }
        let way = if is_kept_out { Some(Way::Queued) } else { Way::of(entry, &request, session, shared) };
        if let Some(way) = way {
            self.leave(way, entry, session, worker.woke);
        } else if entry.command.runs_alone() && !dispatch::is_queued(entry, session) {
            self.step_alone(entry, turn);
        } else {
            let puts = Puts::gather(entry, &self.requests, input, first, session, shared);
            if let Some(count) = puts.and_then(|puts| puts.execute(session, shared, output)) {
                session.record.command.store(entry.number, Ordering::Relaxed);
                tally.batch.add_requests(entry.kind(), count);
                self.cursor.request += count;
                return;
            }
            answer(entry, request, session, shared, output, tally);
            self.cursor.request += 1;
        }
    }

    /// Has the request at the cursor done beside the loop.
    fn leave(&mut self, way: Way, entry: Entry, session: &mut Session, woke: Instant) {
        session.leave_for(Errand { way, entry, number: self.cursor.request, woke });
        self.cursor.request += 1;
    }

    /// Executes the request at the cursor while nobody else does, unless an errand that has just begun keeps it out.
    fn step_alone(&mut self, entry: Entry, turn: &mut Turn<'_, '_>) {
        let Turn { input, session, worker, output, tally, pass } = turn;
        let (shared, request) = (worker.shared, self.requests.get(self.cursor.request, input));
        *pass = None;
        let alone = shared.gate.close();
        if session.may_be_away && shared.gate.keeps_out(entry, &request, session) {
            self.leave(Way::Queued, entry, session, worker.woke);
        } else {
            answer(entry, request, session, shared, output, tally);
            self.cursor.request += 1;
        }
        drop(alone);
        *pass = Some(shared.gate.pass(worker.lane));
    }

    /// Request number `number`; `input` is what it was parsed from.
    pub(crate) fn request<'a>(&'a self, number: usize, input: &'a [u8]) -> Request<'a> {
        self.requests.get(number, input)
    }

    /// Answers reads together, from the cursor on.
    fn read(&mut self, input: &[u8], session: &mut Session, shared: &Shared, output: &mut Output, tally: &mut Tally) {
        let (first, began) = (self.cursor.request, Instant::now());
        let reads = Reads::gather(&self.requests, input, self.cursor, session, shared);
        self.cursor = reads.answer(shared, session.protocol, output, tally);
        let (took, before) = (began.elapsed(), mem::take(&mut self.spent));
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

/// Answers a request with what its command says, or keeps it for later. A refusal takes the place of whatever the command has
/// said before it: there is one reply.
pub(crate) fn answer(
    entry: Entry,
    request: Request<'_>,
    session: &mut Session,
    shared: &Shared,
    output: &mut Output,
    tally: &mut Tally,
) {
    session.record.command.store(entry.number, Ordering::Relaxed);
    tally.batch.add_requests(entry.kind(), 1);
    let mut reply = output.reply(session.protocol);
    let len_bytes = reply.len_bytes();
    let checked = dispatch::check_memory(entry, session, shared);
    let outcome = if let Err(refusal) = checked {
        dispatch::counters(shared, session).note_rejected(entry.number);
        dispatch::note_refused(&refusal, session, shared);
        Err(refusal)
    } else if dispatch::is_queued(entry, session) {
        let transaction = session.transaction.as_mut().expect("it is in one");
        let queued = dispatch::queue(entry, &request, transaction);
        transaction.is_broken |= queued.is_err();
        queued.map(|()| reply.simple("QUEUED"))
    } else {
        let mut call = Call { shared, session, request, reply: reply.reborrow(), tally, pending: None };
        dispatch::execute(entry, &mut call)
    };
    if let Err(refusal) = outcome {
        tally.add_error(entry.kind());
        shared.log.refused(&refusal);
        let text = refusal.text();
        shared.errors.note(&text);
        reply.truncate(len_bytes);
        reply.error(&text);
    }
    if !dispatch::wants_reply(session) && !entry.command.pushes() {
        reply.truncate(len_bytes);
    }
}

fn refuse(refusal: &Refusal, session: &mut Session, shared: &Shared, output: &mut Output, tally: &mut Tally) {
    tally.batch.add_requests(Kind::Other, 1);
    tally.add_error(Kind::Other);
    dispatch::note_refused(refusal, session, shared);
    let text = refusal.text();
    shared.errors.note(&text);
    if dispatch::wants_reply(session) {
        output.reply(session.protocol).error(&text);
    }
}
