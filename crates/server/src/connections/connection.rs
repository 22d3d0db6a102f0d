//! One client's connection.
//!
//! The poller reports a change of readiness once, so readiness is remembered here until the socket says otherwise. A
//! turn is bounded, by one read and by what [`Output::send`] sends; a connection that has more to do gets another turn after the
//! others.

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
use crate::clients::session::Session;
use crate::clients::{self, Record};
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::backlog::Share;
use crate::connections::buffers::Buffers;
use crate::connections::idle;
use crate::connections::input::Input;
use crate::connections::output::Output;
use crate::connections::transport::{Arrived, Transport};
use crate::execution::errands::Errands;
use crate::execution::errands::desk::{Desk, Done};
use crate::execution::errands::errand::Errand;
use crate::execution::pipeline::Pipeline;
use crate::execution::worker::Worker;
use crate::mail::Parcel;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;
use crate::telemetry::Unanswered;

/// What a connection waits for after its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// For nothing but the other connections.
    Again,
    /// For its socket.
    Wait,
    /// It is over.
    Close,
}

pub(crate) struct Connection {
    transport: Transport,
    input: Input,
    parser: Parser,
    /// The parser's limits are those for strangers.
    is_limited: bool,
    pipeline: Pipeline,
    output: Output,
    unanswered: Unanswered,
    unread: Unread,
    /// What it counts for among all clients' backlogs.
    share: Share,
    /// Of messages that wait in the loop.
    expected_bytes: usize,
    session: Session,
    /// The socket has something to read, as far as is known.
    readable: bool,
    /// The client has closed its side: what it sent before must be read up to the end.
    hung_up: bool,
    /// Nothing more will be read.
    ended: bool,
    /// Nothing is read after the next read.
    finishing: bool,
    /// The input holds no complete request.
    starved: bool,
    /// The client is not answered any more.
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
        let mut session = shared.welcome(record);
        session.may_be_away = true;
        Connection {
            transport,
            input: Input::default(),
            parser: Parser::new(shared.administration.settings.limits()),
            is_limited: false,
            pipeline: Pipeline::default(),
            output: Output::default(),
            unanswered: Unanswered::default(),
            unread: Unread::default(),
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

    /// Takes a message for the client, to be sent when `ticket` is durable. One that is abandoned needs none.
    pub(crate) fn receive(&mut self, parcel: &Parcel, ticket: Ticket) {
        self.expected_bytes -= parcel.len_bytes();
        if !self.abandoned {
            let is_subscribed = self.session.record.has(clients::SUBSCRIBED);
            self.output.push(parcel.parts(self.session.protocol, is_subscribed), ticket);
        }
        self.look_at_unread();
    }

    /// Takes the reply of the errand that the client waits for.
    pub(crate) fn come_back(&mut self, done: Done) {
        Desk { session: self.session, pipeline: self.pipeline, input: self.input } = done.desk;
        let (shared, counters) = (&self.shared, &self.shared.telemetry.loops[self.admission.loop_index]);
        let is_durable = shared.keyspace.store.is_durable(done.ticket).unwrap_or(false);
        let ticket = if is_durable { Ticket::default() } else { done.ticket };
        self.output.push([&done.reply, &[]], ticket);
        let now = Instant::now();
        if self.output.holds() {
            self.unanswered.add(ticket, done.woke, done.counts);
        } else {
            counters.watched.note_answered(&done.counts, now - done.woke);
        }
        self.session.is_away = false;
        self.session.show(now);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    pub(crate) fn is_idle(&self, seconds_max: u64) -> bool {
        !self.session.is_away && idle::is_idle(&self.session.record, seconds_max)
    }

    /// Whether it holds replies until they are durable.
    pub(crate) fn holds(&self) -> bool {
        self.output.holds()
    }

    /// What has to be durable until it holds none.
    pub(crate) fn held_ticket(&self) -> Ticket {
        self.output.held_ticket()
    }

    /// Lets replies go that are durable, and says whether it wants a turn. One that waits for what will never be durable is
    /// closed.
    pub(crate) fn release(&mut self) -> bool {
        let shared = &self.shared;
        let released = self.output.release(&shared.keyspace.store);
        self.unanswered.release(&shared.keyspace.store, &shared.telemetry.loops[self.admission.loop_index].watched);
        self.abandoned |= released.is_err();
        released.unwrap_or(true)
    }

    /// Lets the connection be closed at its next turn, whatever was not sent.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    pub(crate) fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        self.transport.register(poll, token)
    }

    /// Whether a request waits for the end of a pause.
    pub(crate) fn is_postponed(&self) -> bool {
        self.session.is_postponed
    }

    /// Takes note of what the poller reports.
    pub(crate) fn note(&mut self, event: &Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.hung_up |= event.is_read_closed();
        self.output.writable |= event.is_writable();
    }

    /// Lets the connection end: it reads once more, answers what it has got and closes.
    pub(crate) fn finish(&mut self) {
        self.readable = !self.ended;
        self.finishing = true;
    }

    /// Executes as far as the socket and the bounds allow; [`Connection::conclude`] follows.
    pub(crate) fn turn(&mut self, worker: &mut Worker<'_>) {
        self.input.borrow(worker.buffers);
        self.output.borrow(worker.buffers);
        self.pipeline.borrow(worker.buffers);
        if let Err(error) = self.advance(worker) {
            self.abandoned = true;
            self.note_failure(&error, worker.shared);
        }
        self.input.give_back(worker.buffers);
        self.pipeline.give_back(worker.buffers);
    }

    /// A connection that breaks needs no line; a client that cannot come in does, for the operator of that client.
    fn note_failure(&self, error: &io::Error, shared: &Shared) {
        if error.kind() == io::ErrorKind::InvalidData && self.transport.is_shaking_hands() {
            shared.administration.log.handshake_failed("client", &self.session.record.addr, error);
        }
    }

    /// Gives up a client that has not agreed on keys in time, if it has not.
    pub(crate) fn end_handshake(&mut self) {
        if self.transport.is_shaking_hands() {
            self.abandoned = true;
            let why = "it took too long";
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

    /// Ends a turn: sends its replies.
    pub(crate) fn conclude(&mut self, counters: &LoopCounters, buffers: &mut Buffers) -> Turn {
        self.abandoned = self.abandoned || self.output.send(&mut self.transport).is_err();
        let sent_bytes = self.output.take_count();
        counters.watched.note_bytes(self.input.take_count(), sent_bytes);
        self.note_sent(sent_bytes);
        self.look_at_unread();
        self.show();
        self.output.give_back(buffers);
        if self.abandoned { Turn::Close } else { self.next_turn() }
    }

    /// Replies and messages that were not sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.output.len_bytes()
    }

    /// Returns the capacity of its own buffers.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.input.pending().len() + self.input.free_bytes() + self.output.capacity_bytes()
    }

    fn show(&self) {
        let record = &self.session.record;
        record.input_bytes.store(self.input.pending().len(), Ordering::Relaxed);
        record.input_free_bytes.store(self.input.free_bytes(), Ordering::Relaxed);
        record.output_bytes.store(self.unread_bytes(), Ordering::Relaxed);
    }

    fn next_turn(&self) -> Turn {
        let over = !self.session.is_away && (self.session.closing || (self.ended && self.starved));
        let sent = self.output.is_empty() && !self.transport.has_unsent();
        let sendable = (self.output.has_sendable() || self.transport.has_unsent()) && self.output.writable;
        let executable = !over && !self.output.is_full() && !self.starved && self.session.goes_on();
        if over && sent {
            Turn::Close
        } else if sendable || executable || self.wants_input() || self.may_grow() {
            Turn::Again
        } else {
            Turn::Wait
        }
    }

    fn wants_input(&self) -> bool {
        self.readable && self.session.goes_on() && !self.output.is_full()
    }

    /// Executes complete requests until none is left or the output is full. Nobody waits for a disk: replies are held instead.
    fn execute(&mut self, worker: &mut Worker<'_>) {
        let store = &worker.shared.keyspace.store;
        let may_execute = |session: &Session| !session.closing && !session.is_away;
        while may_execute(&self.session) && !self.output.is_full() && self.has_request() {
            let start = self.output.end();
            let run = |_: &Store| self.pipeline.run(self.input.pending(), &mut self.session, worker, &mut self.output);
            let (done, ticket) = store.deferred(run);
            let ticket = ticket.merge(mem::take(&mut self.session.heard));
            let now = Instant::now();
            if ticket != Ticket::default() && !store.is_durable(ticket).unwrap_or(false) {
                self.output.hold(start, ticket);
            }
            if self.output.holds() {
                self.unanswered.add(ticket, worker.woke, done);
            } else {
                worker.counters.watched.note_answered(&done, now - worker.woke);
            }
            self.session.show(now);
            if let Some(errand) = self.session.errand.take() {
                self.send(errand, worker.errands);
            }
            if self.session.is_postponed {
                break;
            }
        }
    }

    /// The client is away, with all that is before it.
    fn send(&mut self, errand: Errand, errands: &Errands) {
        let stand_in = self.session.stand_in();
        let desk = Desk {
            session: mem::replace(&mut self.session, stand_in),
            pipeline: mem::take(&mut self.pipeline),
            input: mem::take(&mut self.input),
        };
        errands.send(&self.shared, errand, desk);
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

    /// Holds the client to what may be sent, which depends on whether the client has said who it is.
    fn limit(&mut self) {
        let is_stranger = self.session.login.user().is_none();
        if mem::replace(&mut self.is_limited, is_stranger) != is_stranger {
            let settings = &self.shared.administration.settings;
            self.parser.set_limits(if is_stranger { Limits::for_strangers() } else { settings.limits() });
        }
    }

    fn read(&mut self) -> io::Result<()> {
        match self.input.read(&mut self.transport, self.parser.wanted_bytes())? {
            Arrived::Some => {}
            // A read that leaves room has emptied the socket, and what comes later is reported, but an end that was
            // reported with the data is not reported again.
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
        self.shared.dismiss(&mut self.session);
    }
}
