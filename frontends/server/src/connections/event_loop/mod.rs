//! One thread's share of the connections.
//!
//! # Why a connection waits, and what ends the wait
//! The loop sleeps in the poller while `ready` is empty. A connection that can make progress is in `ready`, or one of
//! these events puts it there:
//!
//! | it waits for | recorded in | ended by |
//! |---|---|---|
//! | its socket | `readable` and `writable`, until the socket returns `WouldBlock` | an event of the poller |
//! | other connections' turns | [`Turn::Again`] | nothing: it is queued immediately |
//! | a disk | `holders` | a wake-up by the store, or the result of [`Holders::request`] |
//! | the end of a pause | `postponed` | the timeout, or a wake-up by the thread that changed it |
//! | space in the mailboxes | `postponed` | a wake-up by the loop that made space |
//! | its own background job, or a job that blocks the connection | its session | the message with the reply |
//! | an element of a list, or a time | its session, `deadlines` | the message of the thread that serves it, or the timeout |
//! | messages sent to it before it unsubscribes | its session | the message behind them |
//! | messages that a turn had no time for | `taken` | nothing: the loop does not sleep |
//! | nothing, but another thread acts on it | the message | the wake-up after every message |
//!
//! A wake-up is a separate event in the poller, and follows the cause: the message is in the mailbox, or the log is
//! synced. So a wake-up that arrives while the loop works is found before the loop next sleeps, together with the
//! cause.
//!
//! A disk is the hard case, because it can become ready between any two steps. Four rules ensure that no holder is
//! forgotten:
//! 1. A connection begins to hold replies only where its requests are executed or a message is added to the output, and
//!    both happen before the end of `execute` in one of that connection's turns. A message behind a streamed value
//!    counts as held ([`Output`]).
//! 2. At the end of `execute` a connection that holds anything is among the holders, and all that it holds is owed,
//!    whatever was owed before.
//! 3. The loop requests the owed ticket before any connection of the group sends, and before the loop sleeps.
//! 4. If the ticket is already durable, the loop visits all holders; later ones fall under rule 2. Otherwise the store
//!    wakes the loop after the ticket has become durable, and the loop then visits all holders, including those for
//!    which something is owed.
//!
//! So no durable ticket leaves replies held that the loop never visits.
//!
//! [`Output`]: crate::connections::output::Output

mod checks;
mod messages;
mod waits;

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use slab::Slab;

use crate::connections::accept::Acceptor;
use crate::connections::adaptive_poll::AdaptivePoll;
use crate::connections::buffers::Buffers;
use crate::connections::connection::{Connection, Turn};
use crate::connections::held::Holders;
use crate::connections::idle::CheckTimer;
use crate::connections::listen;
use crate::connections::order_maintenance::OrderMaintenance;
use crate::connections::output::FULL_BYTES;
use crate::connections::transport::Handshakes;
use crate::execution::background::BackgroundJobs;
use crate::execution::panics;
use crate::execution::worker::Worker;
use crate::messages::LoopMessage;
use crate::shared::Shared;
use waits::Deadlines;

/// Maximum number of events taken from the poller at a time; more wait in the kernel.
const EVENT_COUNT_MAX: usize = 1024;

/// A connection's token is its index in `connections`; the listeners' tokens follow.
pub(crate) const WAKER: Token = Token(usize::MAX);
const FIRST_LISTENER: usize = usize::MAX - 2 * listen::ADDR_COUNT_MAX;

struct ConnectionSlot {
    connection: Connection,
    /// It is in `ready`.
    queued: bool,
    /// It is in `holders`.
    holds: bool,
    /// When its wait for an element ends, as in `deadlines`.
    deadline: Option<Instant>,
}

/// Limits on waiting for clients.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// For clients to read their last replies, once the server stops.
    pub(crate) drain_max: Duration,
    /// For a TLS handshake.
    pub(crate) handshake_max: Duration,
}

pub(crate) struct EventLoop {
    index: usize,
    shared: Arc<Shared>,
    background: Arc<BackgroundJobs>,
    times: Times,
    poll: Poll,
    adaptive_poll: AdaptivePoll,
    messages: Receiver<LoopMessage>,
    /// Messages taken out of the mailbox and not processed yet.
    taken: VecDeque<LoopMessage>,
    /// A client's unread bytes exceed its limit, or a client is held back.
    has_unread: bool,
    acceptors: Vec<Acceptor>,
    connections: Slab<ConnectionSlot>,
    /// Connections that get a turn.
    ready: Vec<usize>,
    buffers: Buffers,
    holders: Holders,
    /// Another loop, or the store on behalf of `holders`, has woken the loop.
    is_woken: bool,
    check_timer: CheckTimer,
    handshakes: Handshakes,
    /// Connections that wait for the end of a pause; some may be closed.
    postponed: BTreeSet<usize>,
    deadlines: Deadlines,
    /// When to disconnect clients that do not read their last replies; set once the server stops.
    deadline: Option<Instant>,
}

impl EventLoop {
    /// Creates a loop that receives messages from a mailbox of `poll`.
    pub(crate) fn new(
        index: usize,
        (shared, background): (Arc<Shared>, Arc<BackgroundJobs>),
        times: Times,
        (poll, messages): (Poll, Receiver<LoopMessage>),
    ) -> EventLoop {
        let waker = shared.mailboxes.waker(index);
        shared.stop.attach(Arc::clone(&waker));
        // This fails only if the loop has ended.
        let holders = Holders::new(&shared.keyspace.store, move || drop(waker.wake()));
        EventLoop {
            index,
            shared,
            background,
            times,
            poll,
            adaptive_poll: AdaptivePoll::default(),
            messages,
            taken: VecDeque::new(),
            has_unread: false,
            acceptors: Vec::new(),
            handshakes: Handshakes::default(),
            postponed: BTreeSet::new(),
            deadlines: Deadlines::default(),
            connections: Slab::new(),
            ready: Vec::new(),
            buffers: Buffers::default(),
            holders,
            is_woken: false,
            check_timer: CheckTimer::default(),
            deadline: None,
        }
    }

    /// Makes this the accepting loop, for each of the acceptors.
    pub(crate) fn accept_from(&mut self, mut acceptor: Acceptor) -> io::Result<()> {
        acceptor.register(&self.poll, Token(FIRST_LISTENER + self.acceptors.len()))?;
        self.acceptors.push(acceptor);
        Ok(())
    }

    /// Serves until the server stops. A loop that ends before, because its poller failed or it panicked, stops the
    /// other loops as well: otherwise its present and future clients would wait forever.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| self.serve()));
        if !matches!(outcome, Ok(Ok(()))) {
            self.shared.stop.stop();
        }
        outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Makes the loop panic in its first round.
    #[cfg(test)]
    pub(crate) fn die(&mut self) {
        self.ready.push(usize::MAX);
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENT_COUNT_MAX);
        let shared = Arc::clone(&self.shared);
        shared.telemetry.loops[self.index].begin();
        let mut order_maintenance = OrderMaintenance::of(&shared, self.index);
        while !self.is_finished() {
            let timeout = self.timeout();
            // While replies wait for a sync, the processor is left to it.
            let may_stay_awake = self.holders.is_empty();
            match self.adaptive_poll.poll(
                &mut self.poll,
                &mut events,
                (timeout, may_stay_awake),
                &mut order_maintenance,
            ) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => self.note(&events),
            }
            let woke = Instant::now();
            self.accept();
            self.take_messages();
            self.end_handshakes();
            if self.shared.stop.is_stopped() && self.deadline.is_none() {
                self.begin_to_stop();
            }
            self.end_pause();
            self.end_waits();
            self.check_clients();
            if mem::take(&mut self.is_woken) {
                self.release();
            }
            self.run_turns(woke);
            self.buffers.trim();
            order_maintenance.end_round(woke);
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.connections.is_empty() || Instant::now() >= deadline)
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() || !self.taken.is_empty() {
            return Some(Duration::ZERO);
        }
        let until_deadline = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let retry_after = || self.acceptors.iter().filter_map(Acceptor::retry_after).min();
        let until_check = self.check_timer.sleep_time(self.needs_checks());
        let until_unpaused = if self.postponed.is_empty() { None } else { self.until_unpaused() };
        let until_end = until_deadline.or_else(retry_after);
        let waits = [until_end, until_check, until_unpaused, self.handshakes.timeout(), self.deadlines.timeout()];
        waits.into_iter().flatten().min()
    }

    /// Returns when postponed connections may proceed without a wake-up. The pause may have ended since the last check.
    fn until_unpaused(&self) -> Option<Duration> {
        if self.shared.may_resume() { Some(Duration::ZERO) } else { self.shared.pause.remaining() }
    }

    /// Returns whether periodic checks of clients are needed.
    fn needs_checks(&self) -> bool {
        self.has_unread || self.shared.administration.settings.idle_seconds_max() > 0
    }

    fn note(&mut self, events: &Events) {
        for event in events {
            let key = event.token().0;
            let listener = key.checked_sub(FIRST_LISTENER);
            if let Some(acceptor) = listener.and_then(|index| self.acceptors.get_mut(index)) {
                acceptor.expect_some();
            } else if event.token() == WAKER {
                self.is_woken = true;
            } else if let Some(slot) = self.connections.get_mut(key) {
                // The slot may have been reused since the event, which is then a spurious event.
                slot.connection.note(event);
                self.queue(key);
            }
        }
    }

    fn accept(&mut self) {
        self.acceptors.iter_mut().for_each(Acceptor::accept_waiting);
    }

    /// Resumes connections whose replies are now durable.
    fn release(&mut self) {
        let (connections, ready) = (&mut self.connections, &mut self.ready);
        self.holders.release(|key| {
            let Some(slot) = connections.get_mut(key) else { return false };
            if slot.connection.release() && !mem::replace(&mut slot.queued, true) {
                ready.push(key);
            }
            slot.holds = slot.connection.held_ticket().is_some();
            slot.holds
        });
    }

    /// Resumes paused connections once they may proceed.
    fn end_pause(&mut self) {
        if !self.postponed.is_empty() && self.shared.may_resume() {
            for key in mem::take(&mut self.postponed) {
                if self.connections.contains(key) {
                    self.queue(key);
                }
            }
        }
    }

    /// Stops accepting and lets existing connections finish.
    fn begin_to_stop(&mut self) {
        self.deadline = Some(Instant::now() + self.times.drain_max);
        self.acceptors.clear();
        self.shared.pause.end();
        let keys: Vec<usize> = self.connections.iter().map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.finish_if_stopping(key));
    }

    fn finish_if_stopping(&mut self, key: usize) {
        if self.deadline.is_some() {
            self.connections[key].connection.finish();
            self.queue(key);
        }
    }

    fn queue(&mut self, key: usize) {
        let slot = &mut self.connections[key];
        if !mem::replace(&mut slot.queued, true) {
            self.ready.push(key);
        }
    }

    /// All ready connections execute before the first replies are sent, while replies are few: a client that is woken
    /// by the first reply finds the others' replies too. One sync, which begins before replies that are not held are
    /// sent, makes the writes of all of them durable.
    fn run_turns(&mut self, woke: Instant) {
        let ready = mem::take(&mut self.ready);
        let mut rest = &ready[..];
        while !rest.is_empty() {
            let (group, behind) = rest.split_at(self.execute(rest, woke));
            if self.holders.request() {
                self.release();
            }
            group.iter().for_each(|&key| self.conclude(key));
            rest = behind;
        }
    }

    /// Executes connections until replies are many, and returns how many were executed.
    fn execute(&mut self, keys: &[usize], woke: Instant) -> usize {
        let mut unsent_bytes = 0;
        for (number, &key) in keys.iter().enumerate() {
            let slot = &mut self.connections[key];
            slot.queued = false;
            let counters = &self.shared.telemetry.loops[self.index];
            let (shared, background, buffers) = (&self.shared, &self.background, &mut self.buffers);
            let before_bytes = slot.connection.unsent_bytes();
            let mut worker = Worker { shared, background, lane: self.index, counters, woke, buffers };
            if let Err(caught) = panics::catch(|| slot.connection.turn(&mut worker)) {
                slot.connection.abandon();
                caught.note("none", shared);
            }
            if let Some(ticket) = slot.connection.held_ticket() {
                self.holders.defer(ticket);
                if !mem::replace(&mut slot.holds, true) {
                    self.holders.add(key);
                }
            }
            unsent_bytes += slot.connection.unsent_bytes().saturating_sub(before_bytes);
            if unsent_bytes >= FULL_BYTES {
                return number + 1;
            }
        }
        keys.len()
    }

    fn conclude(&mut self, key: usize) {
        let slot = &mut self.connections[key];
        let (shared, buffers) = (&self.shared, &mut self.buffers);
        let concluded = panics::catch(|| slot.connection.conclude(&shared.telemetry.loops[self.index], buffers));
        let turn = concluded.unwrap_or_else(|caught| {
            caught.note("none", shared);
            Turn::Close
        });
        self.has_unread |= slot.connection.needs_checks();
        let is_queued = slot.queued;
        self.limit_backlogs();
        self.note_wait(key);
        match turn {
            Turn::Again => self.queue(key),
            Turn::Wait if self.connections[key].connection.is_postponed() => drop(self.postponed.insert(key)),
            Turn::Wait => {}
            Turn::Close => {
                // A connection whose replies will never be durable was queued for closing after it executed.
                if is_queued {
                    self.ready.retain(|queued| *queued != key);
                }
                let slot = self.connections.remove(key);
                self.deadlines.replace(key, slot.deadline, None);
                self.buffers.note_freed(slot.connection.capacity_bytes());
            }
        }
    }
}
