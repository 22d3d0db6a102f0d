//! One thread's share of the connections.
//!
//! The loop sleeps in the poller while no connection is in `ready` or `awake`. A connection enters `ready` by an event
//! of its socket; by its own turn if there is more to do; by a wake-up of the store if its completions wait; or by a
//! periodic check if it is ending or waits for events. When another loop has ended a controller, all connections are
//! checked as well.
//!
//! # Hosts that share memory
//! Such a host signals only if its connection sleeps. So a connection whose read has found nothing stays in `awake`
//! until a poll finds data or makes the host signal (`rings::Readiness`). Polls are bounded for each connection, so an
//! idle loop eventually sleeps in the poller with all connections asleep. File events are checked after a bounded
//! number of turns, or of polls without result. Before sleeping in the poller, the loop calls the poller some times
//! without blocking, which corresponds to polling shared memory.

use std::hint::spin_loop;
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use hikv::Ticket;
use mio::{Events, Poll, Token, Waker};
use rings::{PollBudget, Readiness};
use slab::Slab;

use crate::accept::{Accepted, Acceptor, Arrival};
use crate::connection::{Connection, Turn};
use crate::keys::Keys;
use crate::shared::Shared;
use crate::stop::StopHandle;

const EVENT_COUNT_MAX: usize = 256;
pub(crate) const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// Turns caused by polls of shared memory before the poller is called.
const UNPOLLED_COUNT_MAX: u32 = 16;
/// Polls of shared memory without result, over all connections, before the poller is called: some microseconds.
const UNPOLLED_LOOK_COUNT_MAX: usize = 1024;
/// Non-blocking calls of the poller before the loop sleeps in it.
const POLL_COUNT: u32 = 128;
/// Delay before accepting connections again that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

pub(crate) struct EventLoop {
    shared: Arc<Shared>,
    poll: Poll,
    arrivals: Receiver<Arrival>,
    acceptor: Option<Acceptor>,
    /// More hosts may be waiting than were accepted in a turn.
    is_accepting: bool,
    connections: Slab<Connection>,
    /// Connections that get a turn.
    ready: Keys,
    /// Shared-memory connections that have to be polled.
    awake: Keys,
    /// Connections whose completions wait for a disk.
    holders: Keys,
    /// Turns since the last call of the poller.
    unpolled_count: u32,
    polls: PollBudget,
    store_waker: hikv::Waker,
    is_woken: bool,
    /// Number of ended queues that have been checked for.
    ending_count: u64,
    /// The time of the last call of the poller.
    now: Instant,
    /// When to check all connections.
    check_at: Option<Instant>,
}

struct StopAtEnd(StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl EventLoop {
    pub(crate) fn new(shared: Arc<Shared>, poll: Poll, waker: Arc<Waker>, arrivals: Receiver<Arrival>) -> EventLoop {
        shared.stop.attach(Arc::clone(&waker));
        // This fails only if the loop has ended.
        let store_waker = shared.store.waker(move || drop(waker.wake()));
        EventLoop {
            shared,
            poll,
            arrivals,
            acceptor: None,
            is_accepting: false,
            connections: Slab::new(),
            ready: Keys::default(),
            awake: Keys::default(),
            holders: Keys::default(),
            unpolled_count: 0,
            polls: PollBudget::new(POLL_COUNT),
            store_waker,
            is_woken: false,
            ending_count: 0,
            now: Instant::now(),
            check_at: None,
        }
    }

    /// Makes this the accepting loop.
    pub(crate) fn accept_from(&mut self, mut acceptor: Acceptor) -> io::Result<()> {
        acceptor.register(self.poll.registry(), LISTENER)?;
        self.acceptor = Some(acceptor);
        Ok(())
    }

    /// Serves until the device is stopped.
    pub(crate) fn run(mut self) -> io::Result<()> {
        // Also on a panic: the device stops, instead of continuing without this loop's connections.
        let _stop = StopAtEnd(self.shared.stop.clone());
        let outcome = self.serve();
        self.connections.iter().for_each(|(_, connection)| connection.close(&self.shared));
        outcome
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENT_COUNT_MAX);
        while !self.shared.stop.is_stopped() {
            if !self.poll_shared_memory() {
                self.poll(&mut events)?;
            }
            self.run_turns();
        }
        Ok(())
    }

    /// Polls shared memory: once if there are turns to give, otherwise until data arrives or the limit is reached.
    /// Returns false if the poller must be called.
    fn poll_shared_memory(&mut self) -> bool {
        self.unpolled_count += 1;
        if self.unpolled_count > UNPOLLED_COUNT_MAX {
            return false;
        }
        let mut left_count = UNPOLLED_LOOK_COUNT_MAX;
        while !self.awake.is_empty() && left_count > 0 {
            left_count = left_count.saturating_sub(self.awake.len());
            let (connections, ready) = (&mut self.connections, &mut self.ready);
            self.awake.retain(|key| match connections.get_mut(key).map(Connection::poll) {
                Some(Readiness::Pending) => true,
                Some(Readiness::Ready) => {
                    ready.insert(key);
                    false
                }
                Some(Readiness::Sleeping) | None => false,
            });
            if !self.ready.is_empty() {
                break;
            }
            spin_loop();
        }
        !self.ready.is_empty()
    }

    /// Calls the poller, and sleeps there if there is nothing to do.
    fn poll(&mut self, events: &mut Events) -> io::Result<()> {
        self.unpolled_count = 0;
        let timeout = self.timeout();
        let is_spinning = timeout != Some(Duration::ZERO) && self.polls.try_again();
        match self.poll.poll(events, if is_spinning { Some(Duration::ZERO) } else { timeout }) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => self.note(events),
        }
        self.now = Instant::now();
        if is_spinning && !events.is_empty() {
            self.polls.reset();
        }
        if mem::take(&mut self.is_accepting) {
            self.accept();
        }
        if mem::take(&mut self.is_woken) {
            self.take_arrivals();
            self.holders.drain().into_iter().for_each(|key| self.ready.insert(key));
        }
        let ending_count = self.shared.ending_count();
        let has_ended = mem::replace(&mut self.ending_count, ending_count) != ending_count;
        if has_ended || self.check_at.is_some_and(|at| at <= self.now) {
            self.check_connections();
        }
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        if self.is_accepting || !self.ready.is_empty() || !self.awake.is_empty() {
            return Some(Duration::ZERO);
        }
        self.check_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    fn note(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                WAKER => self.is_woken = true,
                LISTENER => self.is_accepting = true,
                Token(key) => {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.note(event);
                        self.ready.insert(key);
                    }
                }
            }
        }
    }

    fn accept(&mut self) {
        let Some(acceptor) = &mut self.acceptor else { return };
        match acceptor.accept(&self.shared) {
            Accepted::All => {}
            Accepted::Some => self.is_accepting = true,
            Accepted::Later => self.check_within(ACCEPT_AGAIN),
        }
    }

    fn take_arrivals(&mut self) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            if self.register(arrival).is_err() {
                self.shared.connection_count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn register(&mut self, arrival: Arrival) -> io::Result<()> {
        let mut connection = Connection::new(arrival);
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        connection.socket().register(self.poll.registry(), Token(key))?;
        entry.insert(connection);
        self.ready.insert(key);
        Ok(())
    }

    /// Closes connections that have ended, and reports events to hosts.
    fn check_connections(&mut self) {
        self.check_at = None;
        let over: Vec<usize> =
            self.connections.iter().filter(|(_, connection)| connection.is_over()).map(|(key, _)| key).collect();
        over.into_iter().for_each(|key| self.close(key));
        self.is_accepting = self.acceptor.is_some();
        let mut soonest = None;
        for (key, connection) in &mut self.connections {
            let Some(left) = connection.time_left() else { continue };
            if connection.complete_events(&self.shared) || connection.awaits_order() {
                self.ready.insert(key);
            }
            soonest = Some(soonest.map_or(left, |other: Duration| other.min(left)));
        }
        soonest.into_iter().for_each(|left| self.check_within(left));
    }

    fn check_within(&mut self, left: Duration) {
        let at = Instant::now() + left;
        self.check_at = Some(self.check_at.map_or(at, |other| other.min(at)));
    }

    /// All ready connections execute before the first completions are sent, so that their writes share a sync.
    fn run_turns(&mut self) {
        let ready = self.ready.drain();
        let mut owed: Option<Ticket> = None;
        for key in &ready {
            let Some(connection) = self.connections.get_mut(*key) else { continue };
            connection.execute(&self.shared, self.now);
            if let Some(ticket) = connection.ticket() {
                owed = Some(owed.map_or(ticket, |owed| owed.merge(ticket)));
            }
        }
        // A connection whose writes can never become durable is found by the check.
        let is_durable = owed.is_none_or(|owed| self.store_waker.request(owed).unwrap_or(true));
        for key in &ready {
            self.conclude(*key, is_durable);
        }
        self.ready.reuse(ready);
    }

    fn conclude(&mut self, key: usize, is_durable: bool) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (turn, left) = (connection.conclude(&self.shared), connection.time_left());
        let (holds, is_awake) = (connection.ticket().is_some(), connection.is_awake());
        match turn {
            Turn::Close => return self.close(key),
            Turn::Again => self.ready.insert(key),
            Turn::Wait if is_awake => self.awake.insert(key),
            Turn::Wait => {}
        }
        if holds {
            // If the requested ticket is not durable, the store will wake the loop. If it is durable, the connection is
            // ready immediately.
            if is_durable { self.ready.insert(key) } else { self.holders.insert(key) }
        }
        left.into_iter().for_each(|left| self.check_within(left));
    }

    fn close(&mut self, key: usize) {
        let connection = self.connections.remove(key);
        connection.close(&self.shared);
        [&mut self.ready, &mut self.awake, &mut self.holders].into_iter().for_each(|keys| keys.remove(key));
        self.shared.connection_count.fetch_sub(1, Ordering::Relaxed);
    }
}
