//! A connection: a socket, what has arrived, what is to be sent, and the session between.
//!
//! A turn is `execute`, which reads once and carries out every command that is there, and `conclude`, which sends. The loop asks
//! for durability between the two, for all its connections at once.

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

/// How often a host's events are looked for, while it awaits some.
const EVENTS_EVERY: Duration = Duration::from_secs(1);

/// How often a list looks whether keys are in order by now.
const ORDER_EVERY: Duration = Duration::from_millis(10);

pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    input: Input,
    output: Output,
    is_readable: bool,
    /// The poller has told that the host closes: the end is there behind what it has sent.
    is_closing: bool,
    /// What has arrived has no whole PDU.
    is_starved: bool,
    /// Nothing more is carried out: it is closed when what there is was sent.
    is_ending: bool,
    /// It is closed at once.
    is_broken: bool,
    /// What a list that is not done has read in turns before becomes durable with this.
    walked: Ticket,
    /// When it came, or began to end.
    since: Instant,
}

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Others' turns.
    Again,
    /// Its socket, or a disk.
    Wait,
    /// Nothing any more.
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

    /// It waits for what its host says, and has to be looked at for that.
    pub(crate) fn is_awake(&self) -> bool {
        !self.is_readable && !self.is_ending && self.socket.is_awake()
    }

    /// Looks whether its host has said something.
    pub(crate) fn look(&mut self) -> Readiness {
        let look = self.socket.look();
        self.is_readable |= look == Readiness::Ready;
        look
    }

    /// Its queue is over, or it has taken too long to become one.
    pub(crate) fn is_over(&self) -> bool {
        let is_made = self.session.queue().is_some_and(Queue::is_authenticated);
        let is_late = !is_made && self.since.elapsed() >= limits::HANDSHAKE_MAX;
        self.is_ending && self.since.elapsed() >= limits::HANDSHAKE_MAX
            || is_late
            || self.session.queue().is_some_and(|queue| {
                queue.is_over() || queue.is_admin() && queue.controller.time_left() == Some(Duration::ZERO)
            })
    }

    /// When to look at it again though nothing happens.
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

    /// A list waits until keys are in order.
    pub(crate) fn awaits_order(&self) -> bool {
        !self.is_ending && self.session.awaits_order()
    }

    /// Tells the host what has happened; false if it awaits nothing of it.
    pub(crate) fn tell_events(&mut self, shared: &Shared) -> bool {
        if self.is_ending {
            return false;
        }
        let start = self.output.len();
        self.session.tell_events(shared, &mut self.output.to(&mut self.socket));
        self.output.len() > start
    }

    /// What its completions wait for.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.output.ticket()
    }

    /// Reads, and carries out what is there. `now` may be a few turns ago.
    pub(crate) fn execute(&mut self, shared: &Shared, now: Instant) {
        if self.is_ending || self.is_broken || self.output.is_full() {
            return;
        }
        self.take_in();
        let controller =
            self.session.queue().filter(|queue| !queue.is_admin()).map(|queue| Arc::clone(&queue.controller));
        let _turn = controller.as_ref().map(|controller| controller.turn());
        // Its loop looks for that later: until then it may not carry out anything.
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

    /// Reads once, if what has arrived has no whole PDU, and more may have.
    fn take_in(&mut self) {
        if !self.is_starved || !self.is_readable {
            return;
        }
        match self.input.fill(&mut self.socket, self.session.framing.len_bytes_max()) {
            Ok(Filled::Some) => self.is_starved = false,
            Ok(Filled::Rest) => {
                self.is_starved = false;
                self.is_readable = self.is_closing || !self.socket.tells_of_more();
            }
            Ok(Filled::All) => self.is_readable = false,
            Ok(Filled::End) => self.end(),
            Err(_) => self.is_broken = true,
        }
    }

    /// Carries out what has arrived whole.
    fn carry_out(&mut self, shared: &Shared, now: Instant) {
        let (bytes, mut at, mut group) = (self.input.unread(), 0, Group::default());
        let mut left_count = self.socket.turn_count_max();
        let out = &mut self.output.to(&mut self.socket);
        let before = out.len();
        self.is_starved = false;
        self.session.go_on(shared, out);
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
            Ok(true) if !self.output.is_full() => self.look_for_more(),
            Ok(_) => Turn::Wait,
        }
    }

    /// Whether there is something for another turn: looked for here, a turn for nothing is saved.
    fn look_for_more(&mut self) -> Turn {
        self.take_in();
        match self.is_broken {
            true => Turn::Close,
            false if self.is_ending || self.is_readable || !self.is_starved || self.session.is_walking() => Turn::Again,
            false => Turn::Wait,
        }
    }

    /// The connection is closed.
    pub(crate) fn close(&self, shared: &Shared) {
        if let Some(queue) = self.session.queue() {
            queue.end(shared);
        }
    }
}

#[cfg(test)]
mod tests;
