//! What is known of a client between its requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::Ticket;
use resp::{Protocol, Requests};

use crate::administration::acl::Login;
use crate::clients::{self, Kind, Mode, Record, Subscriptions, Tracks};
use crate::execution::errands::errand::Errand;
use crate::keyspace::database::Database;
use crate::observers::watch::{Watched, Watches, Watching};
use crate::table::Entry;

/// Which replies a client wants.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Replies {
    #[default]
    On,
    Off,
    /// None to the request that asks for this.
    SkipThis,
    /// None to the next request.
    SkipNext,
}

/// Requests that wait for `EXEC`.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) requests: Requests,
    /// A request was refused: nothing will be executed.
    pub(crate) is_broken: bool,
    /// One of them needs room.
    pub(crate) needs_space: bool,
    /// One of them does what others may notice.
    pub(crate) changes: bool,
}

pub(crate) struct Session {
    /// The client's number, from 1.
    pub(crate) id: u64,
    pub(crate) record: Arc<Record>,
    pub(crate) protocol: Protocol,
    /// Nothing more is executed; the connection closes when its replies are sent.
    pub(crate) closing: bool,
    pub(crate) db: Database,
    pub(crate) login: Login,
    pub(crate) replies: Replies,
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What the replies to the client's requests tell of that they did not read themselves.
    pub(crate) heard: Ticket,
    /// A transaction's requests are being executed.
    pub(crate) is_executing: bool,
    /// Its next request waits for the end of a pause, or for room in the mail.
    pub(crate) is_postponed: bool,
    /// It may have errands.
    pub(crate) may_be_away: bool,
    /// Nothing is executed before an errand is done: this one, or one that is on its way.
    pub(crate) is_away: bool,
    pub(crate) errand: Option<Errand>,
    pub(crate) watching: Watching,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) monitors: bool,
    /// It wants to know of keys that are changed.
    pub(crate) tracks: Option<Tracks>,
}

impl Session {
    /// That of a client that has said nothing, and has no user.
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
            heard: Ticket::default(),
            is_executing: false,
            is_postponed: false,
            may_be_away: false,
            is_away: false,
            errand: None,
            watching: Watching::default(),
            subscriptions: Subscriptions::default(),
            monitors: false,
            tracks: None,
        }
    }

    /// What its connection has instead while the client is away. Nothing is executed for it.
    pub(crate) fn stand_in(&self) -> Session {
        Session { protocol: self.protocol, is_away: true, ..Session::new(Arc::clone(&self.record)) }
    }

    /// The client is this user from now on.
    pub(crate) fn log_in(&mut self, login: Login) {
        self.record.names.lock().user = login.name().to_owned();
        self.login = login;
    }

    /// Whether its next request may be executed now.
    pub(crate) fn goes_on(&self) -> bool {
        !self.closing && !self.is_postponed && !self.is_away
    }

    /// The client is away until the errand is done.
    pub(crate) fn leave_for(&mut self, errand: Errand) {
        (self.errand, self.is_away) = (Some(errand), true);
    }

    /// Whether its requests may be executed in any way that gives the same replies.
    pub(crate) fn is_plain(&self) -> bool {
        self.transaction.is_none() && self.replies == Replies::On && self.tracks.is_none()
    }

    /// Whether the client's transaction keeps the command for `EXEC`.
    pub(crate) fn queues(&self, entry: Entry) -> bool {
        self.transaction.is_some() && entry.command.policy.when.waits()
    }

    /// Whether others may notice the command: it writes or publishes, or ends a transaction that does.
    pub(crate) fn changes_by(&self, entry: Entry) -> bool {
        let ends_writes = || self.transaction.as_ref().is_some_and(|transaction| transaction.changes);
        if entry.command.executes() { ends_writes() } else { entry.command.is_noticed() }
    }

    /// Forgets `CLIENT CACHING` behind the request that it was for; it stays for a whole transaction.
    #[inline]
    pub(crate) fn forget_caching(&mut self) {
        if let Some(tracks) = &mut self.tracks
            && self.transaction.is_none()
        {
            tracks.has_said_caching = false;
        }
    }

    /// Whether the client wants the reply to the request just executed, and what it wants from now on.
    pub(crate) fn takes_reply(&mut self) -> bool {
        let replies = self.replies;
        self.replies = match replies {
            Replies::SkipThis => Replies::SkipNext,
            Replies::SkipNext => Replies::On,
            other => other,
        };
        replies == Replies::On
    }

    pub(crate) fn watch(&mut self, watched: Watched, watches: &Watches) {
        watches.add(&self.watching.mark, &watched);
        self.watching.keys.push(watched);
    }

    pub(crate) fn unwatch(&mut self, watches: &Watches) {
        for watched in self.watching.keys.drain(..) {
            watches.remove(&self.watching.mark, &watched);
        }
        self.watching.mark.store(false, Ordering::SeqCst);
    }

    /// The client is again as on arrival, but for the login and what others know it by.
    pub(crate) fn reset(&mut self) {
        self.transaction = None;
        (self.db, self.protocol, self.replies) = (Database::FIRST, Protocol::Resp2, Replies::On);
        self.record.is_evictable.store(true, Ordering::Relaxed);
        self.record.names.lock().name.clear();
    }

    /// Lets others see the client as it is.
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
