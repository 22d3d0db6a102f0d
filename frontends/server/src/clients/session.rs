//! A client's state between its requests.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::Ticket;
use resp::{Protocol, Requests};

use crate::clients::{self, Kind, Mode, Record, Subscriptions, Tracks};
use crate::execution::background::job::BackgroundJob;
use crate::execution::waiters::{Waiter, Waiting};
use crate::keyspace::database::Database;
use crate::observers::watch::{Name, WatchedStates, Watches, Watching};
use acl::Login;
use command_table::Entry;

/// The reply mode of a client (`CLIENT REPLY`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// No reply to the current request.
    SkipThis,
    /// No reply to the next request.
    SkipNext,
}

/// Requests queued for `EXEC`.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) requests: Requests,
    /// A request was refused, so nothing will be executed.
    pub(crate) is_broken: bool,
    /// One of them needs memory.
    pub(crate) needs_memory: bool,
    /// One of them runs a script.
    pub(crate) runs_scripts: bool,
    /// One of them may make a collection.
    pub(crate) makes_collections: bool,
    /// One of them has effects that other clients may see.
    pub(crate) changes: bool,
    /// After one of them the client may receive fewer messages.
    pub(crate) ends_messages: bool,
}

/// The messages sent to a client before a request that ends them: the request waits until the client has received them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Receipt {
    #[default]
    Unknown,
    /// The request waits until the loop has taken a message that was sent after them.
    Awaited,
    /// The client has received them.
    Complete,
}

pub(crate) struct Session {
    /// The client ID, from 1.
    pub(crate) id: u64,
    pub(crate) record: Arc<Record>,
    pub(crate) protocol: Protocol,
    /// Nothing more is executed; the connection closes after its replies are sent.
    pub(crate) closing: bool,
    pub(crate) db: Database,
    pub(crate) login: Login,
    pub(crate) replies: Replies,
    pub(crate) transaction: Option<Box<Transaction>>,
    /// The ticket of data that replies reveal although the requests did not read it from the store.
    pub(crate) observed: Ticket,
    /// A transaction is being executed.
    pub(crate) is_executing: bool,
    /// A script is running, which executes the client's current commands.
    pub(crate) runs_script: bool,
    /// The current request has had no effect, and must be executed in the background instead.
    pub(crate) needs_background: bool,
    /// The current script needs the tree of collections, which is not there yet; it has had no effect.
    pub(crate) wants_collections: bool,
    /// Its next request waits for the end of a pause, or for space in the mailboxes.
    pub(crate) is_postponed: bool,
    /// Its requests may run in the background.
    pub(crate) may_use_background: bool,
    /// Nothing is executed until a background job is done: `job`, or one that is already running.
    pub(crate) awaits_job: bool,
    pub(crate) job: Option<BackgroundJob>,
    /// Nothing is executed while it waits for an element.
    pub(crate) waiting: Waiting,
    pub(crate) watching: Watching,
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) monitors: bool,
    pub(crate) receipt: Receipt,
    /// Its key tracking (`CLIENT TRACKING`), if enabled.
    pub(crate) tracks: Option<Tracks>,
}

impl Session {
    /// Creates the session of a new client that is not logged in.
    pub(crate) fn new(record: Arc<Record>) -> Session {
        Session {
            id: record.place.client_id,
            record,
            protocol: Protocol::default(),
            closing: false,
            db: Database::FIRST,
            login: Login::default(),
            replies: Replies::default(),
            transaction: None,
            observed: Ticket::default(),
            is_executing: false,
            runs_script: false,
            needs_background: false,
            wants_collections: false,
            is_postponed: false,
            may_use_background: false,
            awaits_job: false,
            job: None,
            waiting: Waiting::default(),
            watching: Watching::default(),
            subscriptions: Arc::default(),
            monitors: false,
            receipt: Receipt::default(),
            tracks: None,
        }
    }

    /// Returns the placeholder for the connection while a background job has the session. Nothing is executed for it,
    /// but it receives the same messages.
    pub(crate) fn placeholder(&self) -> Session {
        Session {
            protocol: self.protocol,
            awaits_job: true,
            subscriptions: Arc::clone(&self.subscriptions),
            monitors: self.monitors,
            tracks: self.tracks,
            ..Session::new(Arc::clone(&self.record))
        }
    }

    /// Logs the client in.
    pub(crate) fn log_in(&mut self, login: Login) {
        self.record.names.lock().user = login.name().to_owned();
        self.login = login;
    }

    /// Returns whether the next request may be executed now.
    pub(crate) fn can_execute(&self) -> bool {
        let is_free = !self.closing && !self.is_postponed && !self.awaits_job;
        is_free && self.receipt != Receipt::Awaited && self.waiter().is_none()
    }

    /// Returns the waiter, if the client waits for an element.
    #[inline]
    pub(crate) fn waiter(&self) -> Option<&Arc<Waiter>> {
        if let Waiting::For(waiter) = &self.waiting { Some(waiter) } else { None }
    }

    /// Suspends the client until the background job is done.
    pub(crate) fn await_job(&mut self, job: BackgroundJob) {
        (self.job, self.awaits_job) = (Some(job), true);
    }

    /// Returns whether its requests may be executed in any way that gives the same replies.
    pub(crate) fn is_plain(&self) -> bool {
        self.transaction.is_none() && !self.is_silent() && self.tracks.is_none()
    }

    /// Returns whether the command is queued for `EXEC`.
    pub(crate) fn queues(&self, entry: Entry) -> bool {
        self.transaction.is_some() && entry.command.policy.when.waits()
    }

    /// Returns whether messages were sent to the client that it may not have received yet, and that it would no longer
    /// receive after the command.
    #[inline]
    pub(crate) fn may_miss_messages(&mut self, entry: Entry) -> bool {
        let ends_messages = if entry.command.executes() {
            self.transaction.as_ref().is_some_and(|transaction| transaction.ends_messages)
        } else {
            entry.command.ends_messages() && !self.queues(entry)
        };
        if !ends_messages || self.subscriptions.count() == 0 && !self.monitors {
            return false;
        }
        mem::take(&mut self.receipt) != Receipt::Complete
    }

    /// Returns whether other clients may see the command's effects: it writes, publishes, or executes a transaction
    /// that does.
    pub(crate) fn changes_by(&self, entry: Entry) -> bool {
        let ends_writes = || self.transaction.as_ref().is_some_and(|transaction| transaction.changes);
        if entry.command.executes() { ends_writes() } else { entry.command.has_visible_effects() }
    }

    /// Returns whether the command runs a script, or executes a transaction that does.
    pub(crate) fn may_run_script(&self, entry: Entry) -> bool {
        let has_script = |transaction: &Transaction| transaction.runs_scripts;
        if entry.command.executes() {
            self.transaction.as_deref().is_some_and(has_script)
        } else {
            entry.command.runs_scripts()
        }
    }

    /// Clears `CLIENT CACHING` after the request that it applied to; in a transaction it stays until EXEC.
    #[inline]
    pub(crate) fn forget_caching(&mut self) {
        if let Some(tracks) = &mut self.tracks
            && self.transaction.is_none()
        {
            tracks.has_caching = false;
        }
    }

    /// Returns whether the client receives no reply to the current request.
    pub(crate) fn is_silent(&self) -> bool {
        self.replies != Replies::On
    }

    /// Returns whether the client receives the reply to the current request, and updates the reply mode.
    pub(crate) fn wants_reply(&mut self) -> bool {
        let replies = self.replies;
        self.replies = match replies {
            Replies::SkipThis => Replies::SkipNext,
            Replies::SkipNext => Replies::On,
            other => other,
        };
        replies == Replies::On
    }

    pub(crate) fn watch(&mut self, name: Name, state: WatchedStates, watches: &Watches) {
        watches.add(&self.watching.mark, &name);
        self.watching.keys.insert(name, state);
    }

    pub(crate) fn unwatch(&mut self, watches: &Watches) {
        for (name, _) in self.watching.keys.drain() {
            watches.remove(&self.watching.mark, &name);
        }
        self.watching.mark.store(false, Ordering::SeqCst);
    }

    /// Resets the client to its state on arrival, except for its login and the data visible to other clients.
    pub(crate) fn reset(&mut self) {
        self.transaction = None;
        (self.db, self.protocol) = (Database::FIRST, Protocol::Resp2);
        // The reply to RESET itself may have to be skipped.
        if self.replies == Replies::Off {
            self.replies = Replies::On;
        }
        self.record.is_evictable.store(true, Ordering::Relaxed);
        self.record.names.lock().name.clear();
    }

    /// Returns the subscriptions, to be changed.
    pub(crate) fn subscriptions_mut(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        Arc::make_mut(&mut self.subscriptions).of_mut(kind)
    }

    /// Publishes the client's state to its record.
    pub(crate) fn show(&self, now: Instant) {
        let record = &self.record;
        let transaction = self.transaction.as_deref();
        let flags = [
            (transaction.is_some(), clients::IN_TRANSACTION),
            (self.subscriptions.count() > 0, clients::SUBSCRIBED),
            (self.monitors, clients::MONITORS),
            (self.tracks.is_some(), clients::TRACKS),
            (self.tracks.is_some_and(|tracks| tracks.mode == Mode::Broadcast), clients::BROADCASTS),
            (self.watching.mark.load(Ordering::SeqCst), clients::DIRTY),
            (self.closing, clients::CLOSING),
            (self.is_postponed, clients::POSTPONED),
            (self.waiter().is_some(), clients::BLOCKED),
        ];
        record.flags.store(flags.iter().filter(|(holds, _)| *holds).map(|(_, flag)| flag).sum(), Ordering::Relaxed);
        let redirect = self.tracks.map_or(-1, |tracks| tracks.redirect.unwrap_or(0) as i64);
        record.redirect.store(redirect, Ordering::Relaxed);
        record.db.store(self.db.number(), Ordering::Relaxed);
        record.resp.store(if self.protocol == Protocol::Resp3 { 3 } else { 2 }, Ordering::Relaxed);
        record.active_ms.store(now.duration_since(record.connected).as_millis() as u64, Ordering::Relaxed);
        record.channel_count.store(self.subscriptions.of(Kind::Channel).len(), Ordering::Relaxed);
        record.pattern_count.store(self.subscriptions.of(Kind::Pattern).len(), Ordering::Relaxed);
        record.shard_count.store(self.subscriptions.of(Kind::Shard).len(), Ordering::Relaxed);
        record.watch_count.store(self.watching.keys.len(), Ordering::Relaxed);
        record.queued_count.store(transaction.map_or(-1, |queued| queued.requests.len() as i64), Ordering::Relaxed);
        let queued_bytes = transaction.map_or(0, |queued| queued.requests.capacity_bytes());
        record.queued_bytes.store(queued_bytes, Ordering::Relaxed);
    }
}
