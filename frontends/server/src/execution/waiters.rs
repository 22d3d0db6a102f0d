//! The clients that wait for elements, by their keys in the order of arrival (see `waiting`).

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use resp::{Protocol, Reply, Requests};

use crate::clients::Record;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::database::Database;
use crate::observers::events::{Class, GENERIC, LIST, STREAM, STRING, ZSET};
use crate::observers::watch::Name;
use command_table::{Entry, flag};

/// A client's wait, as far as its session knows.
#[derive(Default)]
pub(crate) enum Waiting {
    #[default]
    No,
    /// The client waits.
    For(Arc<Waiter>),
    /// This is the session of a repeated command, for one key.
    Repeated { key: Vec<u8>, finds_nothing: bool },
}

/// The state of a wait.
pub(super) enum State {
    Waiting,
    /// It has ended with this reply.
    Ended(Vec<u8>),
    /// The client has left.
    Left,
}

/// A client that waits for an element.
pub(crate) struct Waiter {
    pub(super) record: Arc<Record>,
    pub(super) entry: Entry,
    pub(super) request: Requests,
    pub(super) db: Database,
    pub(super) protocol: Protocol,
    pub(super) awaited: CollectionType,
    pub(super) names: Vec<Name>,
    /// When the wait ends; `None` if it does not.
    pub(crate) deadline: Option<Instant>,
    pub(super) state: Mutex<State>,
}

impl Waiter {
    /// Ends the wait, unless it has ended; returns whether it did.
    pub(super) fn end(&self, state: State) -> bool {
        let mut now = self.state.lock();
        let is_waiting = matches!(*now, State::Waiting);
        if is_waiting {
            *now = state;
        }
        is_waiting
    }

    /// Takes the reply, if the wait has ended.
    pub(crate) fn take_reply(&self) -> Option<Vec<u8>> {
        match &mut *self.state.lock() {
            State::Ended(reply) => Some(mem::take(reply)),
            State::Waiting | State::Left => None,
        }
    }

    pub(super) fn reply(&self, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Reply::new(&mut bytes, self.protocol));
        bytes
    }

    /// Returns whether the client gets an error if a key is no stream any more: a consumer of a group does.
    pub(super) fn needs_stream(&self) -> bool {
        self.awaited == CollectionType::Stream && self.entry.command.has(flag::WRITE)
    }

    pub(super) fn timed_out(&self) -> Vec<u8> {
        self.reply(|reply| reply.null_array())
    }
}

/// The clients that wait for a key.
#[derive(Default)]
struct Queue {
    /// In the order of arrival.
    waiters: VecDeque<Arc<Waiter>>,
    /// The key is among the ready ones.
    is_ready: bool,
}

#[derive(Default)]
struct Queues {
    by_key: HashMap<Name, Queue>,
    by_client: HashMap<u64, Arc<Waiter>>,
    ready: VecDeque<Name>,
    /// Ready keys that a background job claims.
    deferred: Vec<Name>,
}

/// All waiters.
#[derive(Default)]
pub(crate) struct Waiters {
    count: AtomicUsize,
    has_ready: AtomicBool,
    queues: Mutex<Queues>,
    serving: Mutex<()>,
}

impl Waiters {
    /// Returns whether no client waits.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    pub(super) fn add(&self, waiter: &Arc<Waiter>) {
        let mut queues = self.queues.lock();
        for name in &waiter.names {
            queues.by_key.entry(name.clone()).or_default().waiters.push_back(Arc::clone(waiter));
        }
        queues.by_client.insert(waiter.record.place.client_id, Arc::clone(waiter));
        self.count.store(queues.by_client.len(), Ordering::SeqCst);
    }

    pub(super) fn remove(&self, waiter: &Arc<Waiter>) {
        let mut queues = self.queues.lock();
        for name in &waiter.names {
            let Some(queue) = queues.by_key.get_mut(name) else { continue };
            if let Some(at) = queue.waiters.iter().position(|other| Arc::ptr_eq(other, waiter)) {
                queue.waiters.remove(at);
            }
            if queue.waiters.is_empty() {
                queues.by_key.remove(name);
            }
        }
        let client_id = waiter.record.place.client_id;
        if queues.by_client.get(&client_id).is_some_and(|other| Arc::ptr_eq(other, waiter)) {
            queues.by_client.remove(&client_id);
        }
        self.count.store(queues.by_client.len(), Ordering::SeqCst);
    }

    /// Records a change of a key, which may have elements now, or be no stream any more.
    #[inline]
    pub(crate) fn note(&self, class: Class, db: Database, key: &[u8]) {
        if class & (LIST | ZSET | STREAM | GENERIC | STRING) != 0 && self.count.load(Ordering::SeqCst) > 0 {
            self.note_name(&(db, key.to_vec()));
        }
    }

    #[cold]
    fn note_name(&self, name: &Name) {
        let mut queues = self.queues.lock();
        let Queues { by_key, ready, .. } = &mut *queues;
        if let Some(queue) = by_key.get_mut(name)
            && !mem::replace(&mut queue.is_ready, true)
        {
            ready.push_back(name.clone());
            self.has_ready.store(true, Ordering::SeqCst);
        }
    }

    /// Records that any keys may have changed.
    pub(crate) fn note_all(&self) {
        if self.count.load(Ordering::SeqCst) > 0 {
            let names: Vec<Name> = self.queues.lock().by_key.keys().cloned().collect();
            names.iter().for_each(|name| self.note_name(name));
        }
    }

    /// Returns whether any key is ready.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        self.has_ready.load(Ordering::SeqCst)
    }

    /// Waits until no other thread serves.
    pub(super) fn begin_to_serve(&self) -> MutexGuard<'_, ()> {
        self.serving.lock()
    }

    /// Takes the next ready key, once the one before has been served.
    pub(super) fn next_ready(&self) -> Option<Name> {
        let mut queues = self.queues.lock();
        let next = queues.ready.pop_front();
        match next.as_ref().map(|name| queues.by_key.get_mut(name)) {
            None => self.has_ready.store(false, Ordering::SeqCst),
            Some(queue) => queue.into_iter().for_each(|queue| queue.is_ready = false),
        }
        next
    }

    /// Puts a ready key off until [`Waiters::resume_deferred`].
    pub(super) fn defer(&self, name: Name) {
        self.queues.lock().deferred.push(name);
    }

    /// Makes the deferred keys ready again.
    pub(super) fn resume_deferred(&self) {
        let mut queues = self.queues.lock();
        let deferred = mem::take(&mut queues.deferred);
        if !deferred.is_empty() {
            queues.ready.extend(deferred);
            self.has_ready.store(true, Ordering::SeqCst);
        }
    }

    /// Returns the clients that wait for entries of a stream with this key.
    pub(super) fn readers(&self, name: &Name) -> Vec<Arc<Waiter>> {
        let queues = self.queues.lock();
        let waiters = queues.by_key.get(name).into_iter().flat_map(|queue| &queue.waiters);
        waiters.filter(|waiter| waiter.awaited == CollectionType::Stream).cloned().collect()
    }

    /// Returns the first client that waits for such a collection with this key.
    pub(super) fn first(&self, name: &Name, found: CollectionType) -> Option<Arc<Waiter>> {
        self.queues.lock().by_key.get(name)?.waiters.iter().find(|waiter| waiter.awaited == found).cloned()
    }

    /// Returns the waiter of a client.
    pub(super) fn of_client(&self, client_id: u64) -> Option<Arc<Waiter>> {
        self.queues.lock().by_client.get(&client_id).cloned()
    }

    /// Ends a wait whose time is over, unless it has ended.
    pub(crate) fn end_in_time(&self, waiter: &Arc<Waiter>) {
        if waiter.end(State::Ended(waiter.timed_out())) {
            self.remove(waiter);
        }
    }
}
