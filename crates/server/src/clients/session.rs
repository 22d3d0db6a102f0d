//! What is known of a client between its requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::Ticket;
use resp::{Protocol, Requests};

use crate::administration::acl::Login;
use crate::clients::{self, Record};
use crate::execution::errands::Errand;
use crate::observers::pubsub::Kind;
use crate::observers::watch::{Watched, Watching};
use crate::shared::Shared;

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
    pub(crate) needs_room: bool,
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
    pub(crate) db: u8,
    pub(crate) login: Login,
    pub(crate) replies: Replies,
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What the replies to its requests tell of that they did not read themselves.
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
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) patterns: BTreeSet<Vec<u8>>,
    /// Channels of the shard.
    pub(crate) shards: BTreeSet<Vec<u8>>,
    pub(crate) monitors: bool,
    /// It wants to know when the keys that it has read are changed.
    pub(crate) tracks: bool,
}

impl Session {
    pub(crate) fn new(record: Arc<Record>, shared: &Shared) -> Session {
        shared.clients.add(&record);
        let mut session = Session::bare(record);
        session.log_in(shared.acl.initial_login());
        session
    }

    /// That of a client that has said nothing, and has no user.
    fn bare(record: Arc<Record>) -> Session {
        Session {
            id: record.place.client_id,
            record,
            protocol: Protocol::default(),
            closing: false,
            db: 0,
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
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            shards: BTreeSet::new(),
            monitors: false,
            tracks: false,
        }
    }

    /// What its connection has instead while the client is away. Nothing is executed for it.
    pub(crate) fn stand_in(&self) -> Session {
        Session { protocol: self.protocol, is_away: true, ..Session::bare(Arc::clone(&self.record)) }
    }

    /// The client is this user from now on.
    pub(crate) fn log_in(&mut self, login: Login) {
        self.record.names.lock().user = login.name().to_owned();
        self.login = login;
    }

    /// How many channels and patterns, those of the shard among them, the client subscribes to.
    pub(crate) fn subscription_count(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }

    pub(crate) fn names_of(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
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
        self.transaction.is_none() && self.replies == Replies::On && !self.tracks
    }

    pub(crate) fn watch(&mut self, watched: Watched, shared: &Shared) {
        shared.watches.add(&self.watching.mark, &watched);
        self.watching.keys.push(watched);
    }

    pub(crate) fn unwatch(&mut self, shared: &Shared) {
        for watched in self.watching.keys.drain(..) {
            shared.watches.remove(&self.watching.mark, &watched);
        }
        self.watching.mark.store(false, Ordering::SeqCst);
    }

    pub(crate) fn unsubscribe_all(&mut self, shared: &Shared) {
        for kind in Kind::ALL {
            for name in std::mem::take(self.names_of(kind)) {
                shared.pubsub.unsubscribe(kind, &name, self.record.place);
            }
        }
    }

    pub(crate) fn stop_monitoring(&mut self, shared: &Shared) {
        if std::mem::take(&mut self.monitors) {
            shared.monitors.remove(self.record.place);
        }
    }

    /// The client is what it was when it came, but for its login.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        self.transaction = None;
        self.unwatch(shared);
        self.unsubscribe_all(shared);
        self.stop_monitoring(shared);
        self.tracks = false;
        (self.db, self.protocol, self.replies) = (0, Protocol::Resp2, Replies::On);
        self.record.is_evictable.store(true, Ordering::Relaxed);
        self.record.names.lock().name.clear();
    }

    /// The client is gone.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.reset(shared);
        shared.clients.remove(self.id);
    }

    /// Lets others see the client as it is.
    pub(crate) fn show(&self, now: Instant) {
        let record = &self.record;
        let transaction = self.transaction.as_deref();
        let flags = [
            (transaction.is_some(), clients::IN_TRANSACTION),
            (self.subscription_count() > 0, clients::SUBSCRIBED),
            (self.monitors, clients::MONITORS),
            (self.tracks, clients::TRACKS),
            (self.watching.mark.load(Ordering::SeqCst), clients::DIRTY),
            (self.closing, clients::CLOSING),
        ];
        record.flags.store(flags.iter().filter(|(holds, _)| *holds).map(|(_, flag)| flag).sum(), Ordering::Relaxed);
        record.db.store(self.db, Ordering::Relaxed);
        record.resp.store(if self.protocol == Protocol::Resp3 { 3 } else { 2 }, Ordering::Relaxed);
        record.active_ms.store(now.duration_since(record.connected).as_millis() as u64, Ordering::Relaxed);
        record.channel_count.store(self.channels.len(), Ordering::Relaxed);
        record.pattern_count.store(self.patterns.len(), Ordering::Relaxed);
        record.shard_count.store(self.shards.len(), Ordering::Relaxed);
        record.watch_count.store(self.watching.keys.len(), Ordering::Relaxed);
        record.queued_count.store(transaction.map_or(-1, |queued| queued.requests.len() as i64), Ordering::Relaxed);
        let queued_bytes = transaction.map_or(0, |queued| queued.requests.capacity_bytes());
        record.queued_bytes.store(queued_bytes, Ordering::Relaxed);
    }
}
