//! One client's connection.
//!
//! The poller reports each change of readiness once, so readiness is remembered here until a call returns `WouldBlock`.
//! A turn is limited to one read and to the bytes that [`Output::send`] sends; a connection with more work gets another
//! turn after the other connections.
//!
//! [`Output::send`]: super::output::Output::send

mod incoming;
mod outgoing;

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::{Store, Ticket};
use mio::event::Event;
use mio::{Poll, Token};

use crate::clients::session::{Receipt, Session};
use crate::clients::{Peer, Place, Record};
use crate::connections::admission::Admission;
use crate::connections::backlog;
use crate::connections::buffers::Buffers;
use crate::connections::idle;
use crate::connections::transport::Transport;
use crate::execution::background::BackgroundJobs;
use crate::execution::background::client_state::{ClientState, JobResult};
use crate::execution::background::job::BackgroundJob;
use crate::execution::waiters::Waiting;
use crate::execution::worker::Worker;
use crate::messages::ClientMessage;
use crate::shared::Shared;
use crate::telemetry::LoopCounters;
use incoming::Incoming;
use outgoing::Outgoing;

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
    incoming: Incoming,
    outgoing: Outgoing,
    session: Session,
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
        let incoming = Incoming::new(&shared.administration.settings);
        Connection { transport, incoming, outgoing: Outgoing::default(), session, shared, admission }
    }

    pub(crate) fn is_of(&self, client_id: u64) -> bool {
        self.session.id == client_id
    }

    /// Counts a message for the client that waits in the loop; [`Connection::receive`] will follow.
    pub(crate) fn expect(&mut self, message: &ClientMessage) {
        self.outgoing.expect(message, &self.shared);
    }

    /// Adds a message for the client, to be sent when `ticket` is durable.
    pub(crate) fn receive(&mut self, message: &Arc<ClientMessage>, ticket: Ticket) {
        self.outgoing.receive(message, ticket, &self.session, &self.shared);
    }

    /// Resumes the client after it has received the messages that were sent to it.
    pub(crate) fn end_receipt(&mut self) {
        self.session.receipt = Receipt::Complete;
    }

    /// Resumes the client with the result of its background job.
    pub(crate) fn resume(&mut self, done: JobResult) {
        let ClientState { session, pipeline, input } = done.client_state;
        self.session = session;
        self.incoming.restore(pipeline, input);
        let Connection { outgoing, shared, .. } = self;
        let is_durable = shared.keyspace.store.is_durable(done.ticket).unwrap_or(false);
        let ticket = if is_durable { Ticket::default() } else { done.ticket };
        outgoing.output.add_reply(&done.reply, ticket);
        let now = Instant::now();
        let counters = &shared.telemetry.loops[self.admission.loop_index];
        outgoing.count(&done.counts, ticket, (done.woke, now), counters);
        self.session.awaits_job = false;
        self.session.show(now);
        outgoing.receive_delayed(&self.session, shared);
    }

    /// Returns when the client's wait for an element ends; `None` if it does not.
    pub(crate) fn wait_deadline(&self) -> Option<Instant> {
        self.session.waiter().and_then(|waiter| waiter.deadline)
    }

    /// Ends the client's wait if its time is over.
    pub(crate) fn end_overdue_wait(&mut self, now: Instant) {
        if let Some(waiter) = self.session.waiter()
            && waiter.deadline.is_some_and(|deadline| deadline <= now)
        {
            self.shared.waiters.end_in_time(waiter);
            self.end_wait();
        }
    }

    /// Resumes the client if its wait has ended.
    pub(crate) fn end_wait(&mut self) {
        let Some(reply) = self.session.waiter().and_then(|waiter| waiter.take_reply()) else { return };
        self.session.waiting = Waiting::No;
        if self.session.wants_reply() {
            // Another client's write, which may not be durable yet.
            let store = &self.shared.keyspace.store;
            let so_far = hikv::FrontEnd::of(store).deferred_so_far();
            let is_durable = store.is_durable(so_far).unwrap_or(false);
            self.outgoing.output.add_reply(&reply, if is_durable { Ticket::default() } else { so_far });
        }
        self.session.show(Instant::now());
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.outgoing.is_abandoned()
    }

    pub(crate) fn is_idle(&self, seconds_max: u64) -> bool {
        !self.session.awaits_job && idle::is_idle(&self.session.record, seconds_max)
    }

    /// Returns the ticket that must be durable before all its replies can be sent; `None` if it holds none.
    pub(crate) fn held_ticket(&self) -> Option<Ticket> {
        let output = &self.outgoing.output;
        output.holds().then(|| output.held_ticket())
    }

    /// Releases durable replies, and returns whether the connection needs a turn.
    pub(crate) fn release(&mut self) -> bool {
        self.outgoing.release(&self.shared, &self.shared.telemetry.loops[self.admission.loop_index])
    }

    /// Has the connection closed at its next turn; unsent replies are dropped.
    pub(crate) fn abandon(&mut self) {
        self.outgoing.abandon();
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
        self.incoming.note(event);
        self.outgoing.output.writable |= event.is_writable();
    }

    /// Ends the connection: it reads once more, answers the requests it has, and closes.
    pub(crate) fn finish(&mut self) {
        self.incoming.finish();
    }

    /// Executes as far as the socket and the limits allow; [`Connection::conclude`] follows.
    pub(crate) fn turn(&mut self, worker: &mut Worker<'_>) {
        self.incoming.borrow(worker.buffers);
        self.outgoing.output.borrow(worker.buffers);
        if let Err(error) = self.advance(worker) {
            self.outgoing.abandon();
            // For the operator of that client. Other connection failures are not logged.
            if error.kind() == io::ErrorKind::InvalidData {
                self.note_failed_handshake(&error);
            }
        }
        self.incoming.return_buffers(worker.buffers);
    }

    /// Abandons a client whose TLS handshake is not complete in time.
    pub(crate) fn end_handshake(&mut self) {
        if self.transport.is_shaking_hands() {
            self.outgoing.abandon();
            self.note_failed_handshake(&"timeout");
        }
    }

    /// Logs the failure if it ends a handshake.
    fn note_failed_handshake(&self, why: &dyn std::fmt::Display) {
        if self.transport.is_shaking_hands() {
            self.shared.administration.log.handshake_failed("client", &self.session.record.addr, why);
        }
    }

    fn advance(&mut self, worker: &mut Worker<'_>) -> io::Result<()> {
        self.outgoing.output.send(&mut self.transport)?;
        if self.may_grow() {
            self.outgoing.grow(&self.session.record)?;
        }
        self.execute(worker);
        if self.wants_input() {
            self.incoming.read(&mut self.transport)?;
            self.execute(worker);
        }
        Ok(())
    }

    /// Ends a turn: sends the replies.
    pub(crate) fn conclude(&mut self, counters: &LoopCounters, buffers: &mut Buffers) -> Turn {
        let sent_bytes = self.outgoing.end_turn(&mut self.transport, &self.session.record, &self.shared);
        counters.watched.note_bytes(self.incoming.take_count(), sent_bytes);
        self.show();
        self.outgoing.output.return_buffer(buffers);
        if self.outgoing.is_abandoned() { Turn::Close } else { self.next_turn() }
    }

    /// Returns the bytes of unsent replies and messages.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.outgoing.output.len_bytes()
    }

    /// Returns the capacity of its own buffers.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.incoming.sizes().iter().sum::<usize>() + self.outgoing.output.capacity_bytes()
    }

    fn show(&self) {
        let (record, [input_bytes, unused_bytes]) = (&self.session.record, self.incoming.sizes());
        record.input_bytes.store(input_bytes, Ordering::Relaxed);
        record.input_unused_bytes.store(unused_bytes, Ordering::Relaxed);
        record.output_bytes.store(self.outgoing.unread_bytes(), Ordering::Relaxed);
    }

    fn next_turn(&self) -> Turn {
        let (output, has_unsent) = (&self.outgoing.output, self.transport.has_unsent());
        // As in Redis, a client that waits and closes its side is gone.
        let is_gone = || self.session.waiter().is_some() && self.incoming.is_ending();
        let over = !self.session.awaits_job && (self.session.closing || self.incoming.is_over() || is_gone());
        let sendable = (output.has_sendable() || has_unsent) && output.writable;
        let executable = !over && !output.is_full() && !self.incoming.is_starved() && self.session.can_execute();
        if over && output.is_empty() && !has_unsent {
            Turn::Close
        } else if sendable || executable || self.wants_input() || self.may_grow() {
            Turn::Again
        } else {
            Turn::Wait
        }
    }

    fn wants_input(&self) -> bool {
        self.incoming.is_readable() && self.session.can_execute() && !self.outgoing.output.is_full()
    }

    /// Executes complete requests until none is left or the output is full. It never waits for a disk: replies are held
    /// instead.
    fn execute(&mut self, worker: &mut Worker<'_>) {
        let store = &worker.shared.keyspace.store;
        while self.may_execute() && self.incoming.has_request(&self.session, &worker.shared.administration.settings) {
            let Connection { incoming, outgoing, session, .. } = self;
            let start = outgoing.output.end();
            let run = |_: &Store| incoming.run(session, worker, &mut outgoing.output);
            let (done, ticket) = store.deferred(run);
            let ticket = ticket.merge(mem::take(&mut session.observed));
            let now = Instant::now();
            let is_durable = ticket == Ticket::default() || store.is_durable(ticket).unwrap_or(false);
            outgoing.note_replies(start, (!is_durable).then_some(ticket), incoming.is_within_reply());
            outgoing.count(&done, ticket, (worker.woke, now), worker.counters);
            session.show(now);
            if let Some(job) = session.job.take() {
                self.send(job, worker.background);
            }
            if self.session.is_postponed {
                break;
            }
        }
    }

    /// Returns whether requests may be executed. A postponed request is tried again.
    fn may_execute(&self) -> bool {
        let Session { closing, awaits_job, receipt, .. } = self.session;
        !closing
            && !awaits_job
            && self.session.waiter().is_none()
            && receipt != Receipt::Awaited
            && !self.outgoing.output.is_full()
    }

    /// Moves the client's state to a background job.
    fn send(&mut self, job: BackgroundJob, background: &BackgroundJobs) {
        let placeholder = self.session.placeholder();
        if job.entry.command.may_change_messages() {
            self.outgoing.delay();
        }
        let session = mem::replace(&mut self.session, placeholder);
        let (pipeline, input) = self.incoming.take();
        background.send(&self.shared, job, ClientState { session, pipeline, input });
    }

    /// Returns whether the client sends while its socket accepts nothing and its output is full.
    fn needs_more_space(&self) -> bool {
        let is_known = || self.session.login.user().is_some();
        self.incoming.is_readable() && self.outgoing.is_stopped() && self.session.can_execute() && is_known()
    }

    /// Returns whether more replies may be held for a client that needs it.
    pub(crate) fn may_grow(&self) -> bool {
        self.needs_more_space() && self.outgoing.may_grow(&self.shared)
    }

    /// Returns whether the client is held back because the backlogs are full.
    fn is_held_back(&self) -> bool {
        self.needs_more_space() && !self.outgoing.may_grow(&self.shared)
    }

    /// Returns whether the client does not read, and is held back or has a part in long replies that use too much.
    pub(crate) fn is_stuck(&self) -> bool {
        backlog::is_stuck(&self.session.record)
            && (self.is_held_back() || self.outgoing.backlogs_exceed(1, &self.shared))
    }

    /// Returns whether the loop has to check the client again even without an event.
    pub(crate) fn needs_checks(&self) -> bool {
        self.outgoing.is_over_limit() || self.outgoing.output.backlog_bytes() > 0 || self.is_held_back()
    }

    /// Abandons a client that leaves too many replies or messages unread.
    pub(crate) fn check_unread(&mut self) {
        self.outgoing.check_unread(&self.shared);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        tracing::debug!(client = self.session.id, "client left");
        self.outgoing.leave(&self.session.record, &self.shared);
        if self.session.awaits_job {
            // The job has the session, which is dismissed with the job's result.
            self.shared.clients.remove(self.session.id);
        } else {
            self.shared.dismiss(&mut self.session);
        }
    }
}
