//! One thread's share of the connections.
//!
//! # What a connection waits for, and what ends it
//! The loop sleeps in the poller while `ready` is empty. A connection that could go on is in `ready`, or one of these brings
//! it there:
//!
//! | it waits for | which is known from | and ends with |
//! |---|---|---|
//! | its socket | `readable` and `writable`, which hold until the socket says otherwise | an event of the poller |
//! | others to have a turn | [`Turn::Again`] | itself: it is queued at once |
//! | a disk | `holders` | a wake-up of the store, or the answer of [`Holders::ask`] |
//! | the end of a pause | `postponed` | the time until then, or a wake-up by the thread that changed it |
//! | room in the mail | `postponed` | a wake-up by the loop that made room |
//! | the connection's own errand, or one that keeps it out (`errands`) | its session | the letter with the reply |
//! | letters that a turn had no time for | `taken` | itself: the loop does not sleep |
//! | nothing, but another thread acts on it | the letter | the wake-up that follows every letter |
//!
//! A wake-up is an event of its own in the poller. A wake-up comes after what it tells of: the letter is in the box, the log is
//! synced. So a wake-up that comes while the loop works is found when the loop next wants to sleep, and so is what it tells of.
//!
//! A disk is the hard one, since it can be ready between any two steps. Four rules keep every holder in sight:
//! 1. A connection begins to hold replies only where its requests are executed or a message is given to the connection, and both
//!    come before the end of `execute` in one of that connection's turns. A message behind a value that is being sent counts as
//!    held ([`Output`]).
//! 2. At the end of `execute` a connection that holds anything is among the holders, and all that it holds is owed, whatever was
//!    owed before.
//! 3. What is owed is asked for before any connection of the group sends, and before the loop sleeps.
//! 4. Either the answer is that all of it is durable: then all holders are looked at, and later ones fall under 2. Or the store
//!    wakes the loop after it has become durable: then all holders are looked at, among them those for which something is owed.
//!
//! So there is no ticket behind which something is held that is durable and that the loop will never look at.
//!
//! [`Output`]: crate::connections::output::Output

mod letters;
mod look;

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
use crate::connections::buffers::Buffers;
use crate::connections::connection::{Connection, Turn};
use crate::connections::duty::Duty;
use crate::connections::held::Holders;
use crate::connections::idle::Watchman;
use crate::connections::listen;
use crate::connections::output::FULL_BYTES;
use crate::connections::patience::Patience;
use crate::connections::transport::Handshakes;
use crate::execution::errands::Errands;
use crate::execution::panics;
use crate::execution::worker::Worker;
use crate::mail::Letter;
use crate::shared::Shared;

/// Events taken from the poller at a time; more wait in the kernel.
const EVENT_COUNT_MAX: usize = 1024;

/// Connections have their number in `connections` as token; the listeners follow.
pub(crate) const WAKER: Token = Token(usize::MAX);
const FIRST_LISTENER: usize = usize::MAX - 2 * listen::ADDR_COUNT_MAX;

struct Seat {
    connection: Connection,
    /// It is in `ready`.
    queued: bool,
    /// It is among `holders`.
    holds: bool,
}

/// How long clients are waited for.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// To read their last replies, once the server stops.
    pub(crate) drain_max: Duration,
    /// To agree on TLS.
    pub(crate) handshake_max: Duration,
}

pub(crate) struct EventLoop {
    index: usize,
    shared: Arc<Shared>,
    errands: Arc<Errands>,
    times: Times,
    poll: Poll,
    patience: Patience,
    letters: Receiver<Letter>,
    /// Letters that were taken out of the box, for which there was no time yet.
    taken: VecDeque<Letter>,
    /// A client leaves more unread than may stay, or is held back by what others leave.
    has_unread: bool,
    acceptors: Vec<Acceptor>,
    connections: Slab<Seat>,
    /// Connections that get a turn.
    ready: Vec<usize>,
    buffers: Buffers,
    holders: Holders,
    /// The loop was woken: by other loops, or the store, for which `holders` wait.
    is_woken: bool,
    watchman: Watchman,
    handshakes: Handshakes,
    /// Connections that wait for the end of a pause; some may be gone.
    postponed: BTreeSet<usize>,
    /// When to give up on clients that do not read their last replies; set once the server stops.
    deadline: Option<Instant>,
}

impl EventLoop {
    /// A loop that takes its letters from the other end of a mailbox of `poll`.
    pub(crate) fn new(
        index: usize,
        (shared, errands): (Arc<Shared>, Arc<Errands>),
        times: Times,
        (poll, letters): (Poll, Receiver<Letter>),
    ) -> EventLoop {
        let waker = shared.post.waker(index);
        shared.stop.attach(Arc::clone(&waker));
        // The only failure is a loop that is gone.
        let holders = Holders::new(&shared.keyspace.store, move || drop(waker.wake()));
        EventLoop {
            index,
            shared,
            errands,
            times,
            poll,
            patience: Patience::default(),
            letters,
            taken: VecDeque::new(),
            has_unread: false,
            acceptors: Vec::new(),
            handshakes: Handshakes::default(),
            postponed: BTreeSet::new(),
            connections: Slab::new(),
            ready: Vec::new(),
            buffers: Buffers::default(),
            holders,
            is_woken: false,
            watchman: Watchman::default(),
            deadline: None,
        }
    }

    /// Makes this the loop that accepts, from each of the acceptors.
    pub(crate) fn accept_from(&mut self, mut acceptor: Acceptor) -> io::Result<()> {
        acceptor.register(&self.poll, Token(FIRST_LISTENER + self.acceptors.len()))?;
        self.acceptors.push(acceptor);
        Ok(())
    }

    /// Serves until the server stops. A loop that ends before that, since its poller failed or in a panic, stops the others as well: its
    /// clients, and those that would come to it, would wait for ever.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| self.serve()));
        if !matches!(outcome, Ok(Ok(()))) {
            self.shared.stop.stop();
        }
        outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Has the loop panic in its first round.
    #[cfg(test)]
    pub(crate) fn die(&mut self) {
        self.ready.push(usize::MAX);
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENT_COUNT_MAX);
        let shared = Arc::clone(&self.shared);
        shared.telemetry.loops[self.index].begin();
        let mut duty = Duty::of(&shared, self.index);
        while !self.is_finished() {
            let timeout = self.timeout();
            // Who waits for a sync leaves the processor to it.
            let may_stay_awake = self.holders.is_empty();
            match self.patience.poll(&mut self.poll, &mut events, (timeout, may_stay_awake), &mut duty) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => self.note(&events),
            }
            let woke = Instant::now();
            self.accept();
            self.take_letters();
            self.end_handshakes();
            if self.shared.stop.is_stopped() && self.deadline.is_none() {
                self.begin_to_stop();
            }
            self.end_pause();
            self.look_at_clients();
            if mem::take(&mut self.is_woken) {
                self.release();
            }
            self.give_turns(woke);
            self.buffers.give_back();
            duty.end_round(woke);
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
        let until_look = self.watchman.sleep_time(self.has_to_look());
        let until_unpaused = if self.postponed.is_empty() { None } else { self.until_unpaused() };
        let until_end = until_deadline.or_else(retry_after);
        let waits = [until_end, until_look, until_unpaused, self.handshakes.timeout()];
        waits.into_iter().flatten().min()
    }

    /// When the postponed connections may go on, if no wake-up tells. What held them may have ended since the last look.
    fn until_unpaused(&self) -> Option<Duration> {
        if self.shared.lets_go_on() { Some(Duration::ZERO) } else { self.shared.pause.remaining() }
    }

    /// Whether clients have to be looked at every so often.
    fn has_to_look(&self) -> bool {
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
            } else if let Some(seat) = self.connections.get_mut(key) {
                // It may be the successor of the one that the event is about, for which it is a false alarm.
                seat.connection.note(event);
                self.queue(key);
            }
        }
    }

    fn accept(&mut self) {
        self.acceptors.iter_mut().for_each(Acceptor::accept_waiting);
    }

    /// Lets those connections go on that wait for what is durable now.
    fn release(&mut self) {
        let (connections, ready) = (&mut self.connections, &mut self.ready);
        self.holders.release(|key| {
            let Some(seat) = connections.get_mut(key) else { return false };
            if seat.connection.release() && !mem::replace(&mut seat.queued, true) {
                ready.push(key);
            }
            seat.holds = seat.connection.holds();
            seat.holds
        });
    }

    /// Lets the paused connections go on, once they may.
    fn end_pause(&mut self) {
        if !self.postponed.is_empty() && self.shared.lets_go_on() {
            for key in mem::take(&mut self.postponed) {
                if self.connections.contains(key) {
                    self.queue(key);
                }
            }
        }
    }

    /// Takes no more connections, and has those there are finish.
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
        let seat = &mut self.connections[key];
        if !mem::replace(&mut seat.queued, true) {
            self.ready.push(key);
        }
    }

    /// All ready connections execute before the first replies are sent, as far as replies are few: a client that is woken by the
    /// first finds the others'. All share the sync that makes their writes durable, which begins before the replies that are not
    /// held are sent.
    fn give_turns(&mut self, woke: Instant) {
        let ready = mem::take(&mut self.ready);
        let mut rest = &ready[..];
        while !rest.is_empty() {
            let (group, behind) = rest.split_at(self.execute(rest, woke));
            if self.holders.ask() {
                self.release();
            }
            group.iter().for_each(|&key| self.conclude(key));
            rest = behind;
        }
    }

    /// Has connections execute, until replies are many; says how many did.
    fn execute(&mut self, keys: &[usize], woke: Instant) -> usize {
        let mut unsent_bytes = 0;
        for (number, &key) in keys.iter().enumerate() {
            let seat = &mut self.connections[key];
            seat.queued = false;
            let counters = &self.shared.telemetry.loops[self.index];
            let (shared, errands, buffers) = (&self.shared, &self.errands, &mut self.buffers);
            let before_bytes = seat.connection.unsent_bytes();
            let mut worker = Worker { shared, errands, lane: self.index, counters, woke, buffers };
            if let Err(caught) = panics::catch(|| seat.connection.turn(&mut worker)) {
                seat.connection.abandon();
                caught.note("none", shared);
            }
            if seat.connection.holds() {
                self.holders.owe(seat.connection.held_ticket());
                if !mem::replace(&mut seat.holds, true) {
                    self.holders.add(key);
                }
            }
            unsent_bytes += seat.connection.unsent_bytes().saturating_sub(before_bytes);
            if unsent_bytes >= FULL_BYTES {
                return number + 1;
            }
        }
        keys.len()
    }

    fn conclude(&mut self, key: usize) {
        let seat = &mut self.connections[key];
        let (shared, buffers) = (&self.shared, &mut self.buffers);
        let concluded = panics::catch(|| seat.connection.conclude(&shared.telemetry.loops[self.index], buffers));
        let turn = concluded.unwrap_or_else(|caught| {
            caught.note("none", shared);
            Turn::Close
        });
        self.has_unread |= seat.connection.is_over_limit() || seat.connection.is_held_back();
        match turn {
            Turn::Again => self.queue(key),
            Turn::Wait if seat.connection.is_postponed() => drop(self.postponed.insert(key)),
            Turn::Wait => {}
            Turn::Close => {
                // Who holds replies that will never be durable was queued, to be closed, after it had executed.
                if seat.queued {
                    self.ready.retain(|queued| *queued != key);
                }
                self.buffers.note_freed(seat.connection.capacity_bytes());
                drop(self.connections.remove(key));
            }
        }
    }
}
