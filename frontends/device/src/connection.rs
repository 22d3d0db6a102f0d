//! A connection: its socket, input, output, and session.
//!
//! A turn consists of `execute`, which reads once and executes every complete command, and `conclude`, which sends.
//! Between the two, the loop requests durability for all its connections together.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hikv::Ticket;
use mio::event::Event;
use rings::Readiness;

use crate::accept::Arrival;
use crate::group::Group;
use crate::input::{Filled, Input};
use crate::limits;
use crate::output::Output;
use crate::queue::Queue;
use crate::session::{Flow, Session};
use crate::shared::Shared;
use crate::socket::Socket;

/// Interval of checks for a host's events, while it waits for some.
const EVENTS_EVERY: Duration = Duration::from_secs(1);

/// Interval at which a list checks whether the order of keys is ready.
const ORDER_EVERY: Duration = Duration::from_millis(10);

pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    input: Input,
    output: Output,
    is_readable: bool,
    /// The poller has reported that the host closes; the end of the stream follows the data already sent.
    is_closing: bool,
    /// The input holds no complete PDU.
    is_starved: bool,
    /// Nothing more is executed; the connection is closed after the output is sent.
    is_ending: bool,
    /// It is closed immediately.
    is_broken: bool,
    /// The ticket for everything that an unfinished list has read in earlier turns.
    walked: Ticket,
    /// When the connection was accepted, or began to end.
    since: Instant,
}

/// The next step of a connection after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Another turn.
    Again,
    /// An event of its socket or a disk.
    Wait,
    /// To be closed.
    Close,
}

impl Connection {
    pub(crate) fn new((socket, local): Arrival) -> Connection {
        Connection {
            session: Session::new(local, matches!(socket, Socket::Shm(_))),
            socket,
            input: Input::default(),
            output: Output::default(),
            is_readable: true,
            is_closing: false,
            is_starved: true,
            is_ending: false,
            is_broken: false,
            walked: Ticket::default(),
            since: Instant::now(),
        }
    }

    pub(crate) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    pub(crate) fn note(&mut self, event: &Event) {
        self.socket.note(event);
        self.is_closing |= event.is_read_closed();
        self.is_readable |= event.is_readable() || event.is_read_closed();
    }

    /// Returns whether its shared memory has to be polled.
    pub(crate) fn is_awake(&self) -> bool {
        !self.is_readable && !self.is_ending && self.socket.is_awake()
    }

    /// Polls for data from its host.
    pub(crate) fn poll(&mut self) -> Readiness {
        let poll = self.socket.poll();
        self.is_readable |= poll == Readiness::Ready;
        poll
    }

    /// Returns whether its queue has ended, or it has taken too long to create one.
    pub(crate) fn is_over(&self) -> bool {
        let is_made = self.session.queue().is_some_and(Queue::is_authenticated);
        let is_late = !is_made && self.since.elapsed() >= limits::HANDSHAKE_MAX;
        self.is_ending && self.since.elapsed() >= limits::HANDSHAKE_MAX
            || is_late
            || self.session.queue().is_some_and(|queue| {
                queue.is_over() || queue.is_admin() && queue.controller.time_left() == Some(Duration::ZERO)
            })
    }

    /// Returns when to check it again without an event.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let Some(queue) = self.session.queue().filter(|queue| !self.is_ending && queue.is_authenticated()) else {
            return Some(limits::HANDSHAKE_MAX.saturating_sub(self.since.elapsed()));
        };
        if !queue.is_admin() {
            return queue.awaits_order().then_some(ORDER_EVERY);
        }
        let events = queue.controller.state().events.is_awaited().then_some(EVENTS_EVERY);
        [events, queue.controller.time_left()].into_iter().flatten().min()
    }

    /// Returns whether a list waits for the order of keys.
    pub(crate) fn awaits_order(&self) -> bool {
        !self.is_ending && self.session.awaits_order()
    }

    /// Completes event commands for events that have occurred; returns false if the host waits for none.
    pub(crate) fn complete_events(&mut self, shared: &Shared) -> bool {
        if self.is_ending {
            return false;
        }
        let start = self.output.len();
        self.session.complete_events(shared, &mut self.output.to(&mut self.socket));
        self.output.len() > start
    }

    /// Returns the ticket that its completions wait for.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.output.ticket()
    }

    /// Reads, and executes the commands that have arrived. `now` may be a few turns old.
    pub(crate) fn execute(&mut self, shared: &Shared, now: Instant) {
        if self.is_ending || self.is_broken || self.output.is_full() {
            return;
        }
        self.read_input();
        let controller =
            self.session.queue().filter(|queue| !queue.is_admin()).map(|queue| Arc::clone(&queue.controller));
        let _turn = controller.as_ref().map(|controller| controller.turn());
        // Its loop will close it later; until then it must not execute anything.
        if self.session.queue().is_some_and(Queue::is_over) {
            self.is_broken = true;
            return;
        }
        let start = self.output.len();
        let ((), ticket) = shared.store.deferred(|_| self.carry_out(shared, now));
        let ticket = mem::take(&mut self.walked).merge(ticket);
        self.output.hold(start, ticket);
        if self.session.is_walking() {
            self.walked = ticket;
        }
    }

    /// Reads once, if the input has no complete PDU and there may be more data.
    fn read_input(&mut self) {
        if !self.is_starved || !self.is_readable {
            return;
        }
        match self.input.fill(&mut self.socket, self.session.framing.len_bytes_max()) {
            Ok(Filled::Some) => self.is_starved = false,
            Ok(Filled::Rest) => {
                self.is_starved = false;
                self.is_readable = self.is_closing || !self.socket.reports_later_data();
            }
            Ok(Filled::All) => self.is_readable = false,
            Ok(Filled::End) => self.end(),
            Err(_) => self.is_broken = true,
        }
    }

    /// Executes the complete commands of the input.
    fn carry_out(&mut self, shared: &Shared, now: Instant) {
        let (bytes, mut at, mut group) = (self.input.unread(), 0, Group::default());
        let mut left_count = self.socket.turn_count_max();
        let out = &mut self.output.to(&mut self.socket);
        let before = out.len();
        self.is_starved = false;
        self.session.continue_walk(shared, out);
        let outcome = loop {
            if out.len() - before >= limits::OUTPUT_BYTES_MAX || self.session.is_walking() || left_count == 0 {
                self.is_starved = at == bytes.len();
                break Ok(Flow::Go);
            }
            left_count -= 1;
            match self.session.framing.next(&bytes[at..]) {
                Ok(None) => {
                    self.is_starved = true;
                    break Ok(Flow::Go);
                }
                Ok(Some((pdu, len_bytes))) => match self.session.take(shared, &pdu, &mut group, out) {
                    Ok(Flow::Go) => at += len_bytes,
                    Ok(Flow::Turn) => {
                        at += len_bytes;
                        break Ok(Flow::Turn);
                    }
                    Ok(Flow::Close) => break Ok(Flow::Close),
                    Err(fatal) => {
                        break Err(nvme::Fatal::new(fatal.cause, fatal.information, &bytes[at..at + len_bytes]));
                    }
                },
                Err(fatal) => break Err(fatal),
            }
        };
        self.session.carry_out(shared, &mut group, out);
        drop(group);
        if at > 0 {
            self.session.conclude_turn(shared, now);
        }
        match outcome {
            Ok(Flow::Go | Flow::Turn) => {}
            Ok(Flow::Close) => self.end(),
            Err(fatal) => {
                tracing::debug!(%fatal, "connection ended");
                self.session.end_with(&fatal, out);
                self.end();
            }
        }
        self.input.consume(at);
    }

    fn end(&mut self) {
        if !self.is_ending {
            (self.is_ending, self.since) = (true, Instant::now());
        }
    }

    pub(crate) fn conclude(&mut self, shared: &Shared) -> Turn {
        if self.is_broken || self.output.release(&shared.store).is_err() {
            return Turn::Close;
        }
        match self.output.send(&mut self.socket) {
            Err(_) => Turn::Close,
            Ok(_) if self.is_ending => {
                if self.output.is_empty() {
                    Turn::Close
                } else {
                    Turn::Wait
                }
            }
            Ok(_) if self.awaits_order() => Turn::Wait,
            Ok(true) if !self.output.is_full() => self.has_more_work(),
            Ok(_) => Turn::Wait,
        }
    }

    /// Returns whether there is work for another turn. Checking here saves a turn without work.
    fn has_more_work(&mut self) -> Turn {
        self.read_input();
        match self.is_broken {
            true => Turn::Close,
            false if self.is_ending || self.is_readable || !self.is_starved || self.session.is_walking() => Turn::Again,
            false => Turn::Wait,
        }
    }

    /// Cleans up after the connection was closed.
    pub(crate) fn close(&self, shared: &Shared) {
        if let Some(queue) = self.session.queue() {
            queue.end(shared);
        }
    }
}

#[cfg(test)]
mod tests;
