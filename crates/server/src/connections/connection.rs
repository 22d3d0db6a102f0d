//! One client's connection.
//!
//! The poller reports each change of readiness once, so readiness is remembered here until a call returns `WouldBlock`.
//! A turn is limited to one read and to the bytes that [`Output::send`] sends; a connection with more work gets another
//! turn after the other connections.

mod unread;

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::{Store, Ticket};
use mio::event::Event;
use mio::{Poll, Token};
use resp::{Limits, Parser};

use crate::administration::output_limits::Unread;
use crate::clients::session::{Receipt, Session};
use crate::clients::{self, Record};
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::backlog::Share;
use crate::connections::buffers::Buffers;
use crate::connections::idle;
use crate::connections::input::Input;
use crate::connections::output::Output;
use crate::connections::transport::{Arrived, Transport};
use crate::execution::background::BackgroundJobs;
use crate::execution::background::client_state::{ClientState, JobResult};
use crate::execution::background::job::BackgroundJob;
use crate::execution::pipeline::Pipeline;
use crate::execution::worker::Worker;
use crate::messages::ClientMessage;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;
use crate::telemetry::Unanswered;

/// The next step of a connection after its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another turn after the other connections.
    Again,
    /// An event of its socket.
    Wait,
    /// To be closed.
    Close,
}

pub(crate) struct Connection {
    transport: Transport,
    input: Input,
    parser: Parser,
    /// The parser uses the limits for clients that are not logged in.
    is_limited: bool,
    pipeline: Pipeline,
    output: Output,
    unanswered: Unanswered,
    unread_messages: Unread,
    unread_replies: Unread,
    /// Its part of all clients' backlogs.
    share: Share,
    /// Bytes of messages for it that wait in the loop.
    expected_bytes: usize,
    /// Messages that wait for the end of a background job which may start or change what the client receives. The reply
    /// comes first, and decides the messages' form.
    delayed: Option<Vec<(Arc<ClientMessage>, Ticket)>>,
    session: Session,
    /// The socket may have data to read.
    readable: bool,
    /// The client has closed its side; data that it sent before must be read to the end.
    hung_up: bool,
    /// Nothing more will be read.
    ended: bool,
    /// One more read, then none.
    finishing: bool,
    /// The input holds no complete request.
    starved: bool,
    /// No more replies are sent.
    abandoned: bool,
    shared: Arc<Shared>,
    admission: Admission,
}

impl Connection {
    pub(crate) fn new(
        transport: Transport,
        addr: Peer,
        place: Place,
        admission: Admission,
        shared: Arc<Shared>,
    ) -> Connection {
        let record = Arc::new(Record::new(place, addr.clone(), transport.local_addr().map_or(addr, Peer::Ip)));
        let mut session = shared.new_session(record);
        session.may_use_background = true;
        Connection {
            transport,
            input: Input::default(),
            parser: Parser::new(shared.administration.settings.limits()),
            is_limited: false,
            pipeline: Pipeline::default(),
            output: Output::default(),
            unanswered: Unanswered::default(),
            unread_messages: Unread::default(),
            unread_replies: Unread::default(),
            delayed: None,
            share: Share::default(),
            expected_bytes: 0,
            session,
            readable: false,
            hung_up: false,
            ended: false,
            finishing: false,
            starved: true,
            abandoned: false,
            shared,
            admission,
        }
    }

    pub(crate) fn is_of(&self, client_id: u64) -> bool {
        self.session.id == client_id
    }

    /// Adds a message for the client, to be sent when `ticket` is durable. Does nothing if the connection is abandoned.
    pub(crate) fn receive(&mut self, message: &Arc<ClientMessage>, ticket: Ticket) {
        if let Some(delayed) = self.delayed.as_mut().filter(|_| !self.abandoned) {
            delayed.push((Arc::clone(message), ticket));
            return;
        }
        self.expected_bytes -= message.len_bytes();
        if !self.abandoned && message.is_expected_by(&self.session) {
            let is_subscribed = self.session.record.has(clients::SUBSCRIBED);
            self.output.push(message.parts(self.session.protocol, is_subscribed), ticket);
        }
        self.check_unread();
    }

    /// Resumes the client after it has received the messages that were sent to it.
    pub(crate) fn end_receipt(&mut self) {
        self.session.receipt = Receipt::Complete;
    }

    /// Resumes the client with the result of its background job.
    pub(crate) fn resume(&mut self, done: JobResult) {
        ClientState { session: self.session, pipeline: self.pipeline, input: self.input } = done.client_state;
        let (shared, counters) = (&self.shared, &self.shared.telemetry.loops[self.admission.loop_index]);
        let is_durable = shared.keyspace.store.is_durable(done.ticket).unwrap_or(false);
        let ticket = if is_durable { Ticket::default() } else { done.ticket };
        self.output.add_reply(&done.reply, ticket);
        let now = Instant::now();
        if self.output.holds() {
            self.unanswered.add(ticket, done.woke, done.counts);
        } else {
            counters.watched.note_answered(&done.counts, now - done.woke);
        }
        self.session.awaits_job = false;
        self.session.show(now);
        for (message, ticket) in self.delayed.take().into_iter().flatten() {
            self.receive(&message, ticket);
        }
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    pub(crate) fn is_idle(&self, seconds_max: u64) -> bool {
        !self.session.awaits_job && idle::is_idle(&self.session.record, seconds_max)
    }

    /// Returns whether it holds replies until they are durable.
    pub(crate) fn holds(&self) -> bool {
        self.output.holds()
    }

    /// Returns the ticket that must be durable before all its replies can be sent.
    pub(crate) fn held_ticket(&self) -> Ticket {
        self.output.held_ticket()
    }

    /// Releases durable replies, and returns whether the connection needs a turn. Closes a connection that waits for
    /// data that will never be durable.
    pub(crate) fn release(&mut self) -> bool {
        let shared = &self.shared;
        let released = self.output.release(&shared.keyspace.store);
        self.unanswered.release(&shared.keyspace.store, &shared.telemetry.loops[self.admission.loop_index].watched);
        self.abandoned |= released.is_err();
        released.unwrap_or(true)
    }

    /// Has the connection closed at its next turn; unsent replies are dropped.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.transport.register(poll, token)
    }

    /// Returns whether a request waits for the end of a pause.
    pub(crate) fn is_postponed(&self) -> bool {
        self.session.is_postponed
    }

    /// Records an event of the poller.
    pub(crate) fn note(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.hung_up |= event.is_read_closed();
        self.output.writable |= event.is_writable();
    }

    /// Ends the connection: it reads once more, answers the requests it has, and closes.
    pub(crate) fn finish(&mut self) {
        self.readable = !self.ended;
        self.finishing = true;
    }

    /// Executes as far as the socket and the limits allow; [`Connection::conclude`] follows.
    pub(crate) fn turn(&mut self, worker: &mut Worker<'_>) {
        self.input.borrow(worker.buffers);
        self.output.borrow(worker.buffers);
        self.pipeline.borrow(worker.buffers);
        if let Err(error) = self.advance(worker) {
            self.abandoned = true;
            self.note_failure(&error, worker.shared);
        }
        self.input.return_buffer(worker.buffers);
        self.pipeline.return_buffer(worker.buffers);
    }

    /// Logs a failed handshake, for the operator of that client. Other connection failures are not logged.
    fn note_failure(&self, error: &io::Error, shared: &Shared) {
        if error.kind() == io::ErrorKind::InvalidData && self.transport.is_shaking_hands() {
            shared.administration.log.handshake_failed("client", &self.session.record.addr, error);
        }
    }

    /// Abandons a client whose TLS handshake is not complete in time.
    pub(crate) fn end_handshake(&mut self) {
        if self.transport.is_shaking_hands() {
            self.abandoned = true;
            let why = "timeout";
            self.shared.administration.log.handshake_failed("client", &self.session.record.addr, &why);
        }
    }

    fn advance(&mut self, worker: &mut Worker<'_>) -> io::Result<()> {
        self.output.send(&mut self.transport)?;
        if self.may_grow() {
            self.grow()?;
        }
        self.execute(worker);
        if self.wants_input() {
            self.read()?;
            self.execute(worker);
        }
        Ok(())
    }

    /// Ends a turn: sends the replies.
    pub(crate) fn conclude(&mut self, counters: &LoopCounters, buffers: &mut Buffers) -> Turn {
        self.abandoned = self.abandoned || self.output.send(&mut self.transport).is_err();
        let sent_bytes = self.output.take_count();
        counters.watched.note_bytes(self.input.take_count(), sent_bytes);
        self.note_sent(sent_bytes);
        self.check_unread();
        self.show();
        self.output.return_buffer(buffers);
        if self.abandoned { Turn::Close } else { self.next_turn() }
    }

    /// Returns the bytes of unsent replies and messages.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.output.len_bytes()
    }

    /// Returns the capacity of its own buffers.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.input.pending().len() + self.input.unused_bytes() + self.output.capacity_bytes()
    }

    fn show(&self) {
        let record = &self.session.record;
        record.input_bytes.store(self.input.pending().len(), Ordering::Relaxed);
        record.input_unused_bytes.store(self.input.unused_bytes(), Ordering::Relaxed);
        record.output_bytes.store(self.unread_bytes(), Ordering::Relaxed);
    }

    fn next_turn(&self) -> Turn {
        let over = !self.session.awaits_job && (self.session.closing || (self.ended && self.starved));
        let sent = self.output.is_empty() && !self.transport.has_unsent();
        let sendable = (self.output.has_sendable() || self.transport.has_unsent()) && self.output.writable;
        let executable = !over && !self.output.is_full() && !self.starved && self.session.can_execute();
        if over && sent {
            Turn::Close
        } else if sendable || executable || self.wants_input() || self.may_grow() {
            Turn::Again
        } else {
            Turn::Wait
        }
    }

    fn wants_input(&self) -> bool {
        self.readable && self.session.can_execute() && !self.output.is_full()
    }

    /// Executes complete requests until none is left or the output is full. It never waits for a disk: replies are held
    /// instead.
    fn execute(&mut self, worker: &mut Worker<'_>) {
        let store = &worker.shared.keyspace.store;
        let may_execute =
            |session: &Session| !session.closing && !session.awaits_job && session.receipt != Receipt::Awaited;
        while may_execute(&self.session) && !self.output.is_full() && self.has_request() {
            let start = self.output.end();
            let run = |_: &Store| self.pipeline.run(self.input.pending(), &mut self.session, worker, &mut self.output);
            let (done, ticket) = store.deferred(run);
            let ticket = ticket.merge(mem::take(&mut self.session.observed));
            let now = Instant::now();
            if ticket != Ticket::default() && !store.is_durable(ticket).unwrap_or(false) {
                self.output.hold(start, ticket);
            }
            self.output.set_within_reply(self.pipeline.is_within_reply());
            if self.output.holds() {
                self.unanswered.add(ticket, worker.woke, done);
            } else {
                worker.counters.watched.note_answered(&done, now - worker.woke);
            }
            self.session.show(now);
            if let Some(job) = self.session.job.take() {
                self.send(job, worker.background);
            }
            if self.session.is_postponed {
                break;
            }
        }
    }

    /// Moves the client's state to a background job.
    fn send(&mut self, job: BackgroundJob, background: &BackgroundJobs) {
        let placeholder = self.session.placeholder();
        self.delayed = job.entry.command.may_change_messages().then(Vec::new);
        let client_state = ClientState {
            session: mem::replace(&mut self.session, placeholder),
            pipeline: mem::take(&mut self.pipeline),
            input: mem::take(&mut self.input),
        };
        background.send(&self.shared, job, client_state);
    }

    fn has_request(&mut self) -> bool {
        if self.pipeline.is_done() {
            self.input.consume(self.pipeline.restart());
            self.limit();
            self.pipeline.parse(&mut self.parser, self.input.pending(), self.is_limited);
        }
        self.starved = self.pipeline.is_done();
        !self.starved
    }

    /// Sets the parser's limits, which depend on whether the client is logged in.
    fn limit(&mut self) {
        let is_unauthenticated = self.session.login.user().is_none();
        if mem::replace(&mut self.is_limited, is_unauthenticated) != is_unauthenticated {
            let settings = &self.shared.administration.settings;
            self.parser.set_limits(if is_unauthenticated { Limits::unauthenticated() } else { settings.limits() });
        }
    }

    fn read(&mut self) -> io::Result<()> {
        match self.input.read(&mut self.transport, self.parser.wanted_bytes())? {
            Arrived::Some => {}
            // A read that does not fill the buffer has emptied the socket. Later data causes an event, but an end of
            // stream that was reported with the data does not.
            Arrived::All => self.readable = self.hung_up,
            Arrived::End => self.ended = true,
        }
        self.ended |= mem::take(&mut self.finishing);
        self.readable &= !self.ended;
        self.starved = false;
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        tracing::debug!(client = self.session.id, "client left");
        self.share.set(0, &self.session.record, &self.shared.backlogs);
        if self.session.awaits_job {
            // The job has the session, which is dismissed with the job's result.
            self.shared.clients.remove(self.session.id);
        } else {
            self.shared.dismiss(&mut self.session);
        }
    }
}
