//! Clients that wait for elements of lists and sorted sets, or entries of streams: `BLPOP`, `BZPOPMIN`, `XREAD` and the
//! like.
//!
//! A command that finds no element registers its client as a [`Waiter`] with its keys, and leaves no reply. Nothing
//! more of the client is executed. Whatever adds elements reports a change of the key (`observers::notify`), which then
//! is *ready*. After each command, script or `EXEC`, its thread serves the ready keys: for each waiter of the key, in
//! the order of arrival, it executes the waiter's command again, for this key alone and as the waiter's client, until
//! the key has no element left. It stores the reply in the waiter and sends a message to the loop of the client. So a
//! client that waits has been served before the reply to the push is sent. `BLMOVE` makes its destination ready in
//! turn. An entry of a stream stays there, so each client that waits for the stream is tried once. Those of consumer
//! groups are also tried when the key is no stream any more, for an error.
//!
//! # No wake-up is lost
//! A waiter registers while its command has its keys for itself: it holds their locks, or has exclusive access, or is a
//! background job that claims them. A push makes its change under the same protection, and looks for waiters after it.
//! So one of the two comes first: either the waiter's command sees the element, or the push sees the waiter. While the
//! tree of collections does not exist, there are no locks and no pushes; a command that makes it has exclusive access.
//!
//! A ready key stays marked (`has_ready`) until it has been served. Threads serve one at a time, so a thread that finds
//! the mark waits until its key has been served, whoever does it. Another loop may pop an element after the push and
//! before the waiter is served. Then the waiter goes on waiting, as if the pop had come first.
//!
//! The thread that serves has a lane of the gate or exclusive access. If a background job claims one of the waiter's
//! keys, the ready key is deferred, and the job's thread serves it after the claim has ended. A thread that defers a
//! key checks afterwards whether there is still a claim; the job's thread ends the claim before it looks for deferred
//! keys. So one of them finds the key.
//!
//! A wait ends once: by an element, by its time, by `CLIENT UNBLOCK`, or because the client leaves. Each takes the lock
//! of the waiter's state, which the thread that serves holds while it executes the command. So no element is popped for
//! a waiter whose time is over. A client that leaves after it was served has its element lost, as in Redis. The reply
//! is in the waiter, and the message only says so. So it does not matter whether the message overtakes the session of a
//! client that began to wait in a background job. The changes of the command are announced after that message: a waiter
//! reads its reply before an invalidation of what its own command has changed.
//!
//! # Lock order
//! The gate, `serving`, a waiter's state, the locks of keys, `queues`.

use std::collections::BTreeSet;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use resp::{Reply, Requests};

use super::call::Call;
use super::waiters::{State, Waiter, Waiting};
use crate::clients::session::Session;
use crate::errors::{FixedError, Refusal};
use crate::keyspace::collections::CollectionType;
use crate::messages::LoopMessage;
use crate::observers::announcements::Announcements;
use crate::observers::watch::Name;
use crate::shared::Shared;
use crate::telemetry::EventCounts;

/// The outcome of a repeated command.
enum Outcome {
    /// The waiter no longer waits.
    Over,
    Nothing,
    /// A background job claims a key.
    Claimed,
}

impl Shared {
    /// Serves the clients that wait for ready keys. The caller has a lane of the gate or exclusive access.
    #[inline]
    pub(crate) fn serve_waiters(&self) {
        if self.waiters.has_ready() {
            self.serve_ready();
        }
    }

    #[cold]
    fn serve_ready(&self) {
        let _serving = self.waiters.begin_to_serve();
        while let Some(name) = self.waiters.next_ready() {
            self.serve_key(&name);
        }
    }

    /// Has deferred keys served, now that the job has ended that claimed them. The caller has a lane of the gate.
    pub(crate) fn serve_deferred_waiters(&self) {
        self.waiters.resume_deferred();
        self.serve_waiters();
    }

    fn serve_key(&self, name: &Name) {
        let found = self.type_of(name);
        for waiter in self.waiters.readers(name) {
            let is_wanted = found == Some(CollectionType::Stream) || waiter.needs_stream();
            if is_wanted && matches!(self.repeat(&waiter, &name.1), Outcome::Claimed) {
                return self.defer(name);
            }
        }
        if found == Some(CollectionType::Stream) {
            return;
        }
        while let Some(waiter) = self.type_of(name).and_then(|found| self.waiters.first(name, found)) {
            match self.repeat(&waiter, &name.1) {
                Outcome::Over => {}
                Outcome::Nothing => return,
                Outcome::Claimed => return self.defer(name),
            }
        }
    }

    fn defer(&self, name: &Name) {
        self.waiters.defer(name.clone());
        if !self.gate.has_claim() {
            self.waiters.resume_deferred();
        }
    }

    /// Returns the type of the collection of this key.
    fn type_of(&self, name: &Name) -> Option<CollectionType> {
        let (items, namespace) = (self.keyspace.items(None), self.keyspace.namespace(name.0));
        let found = self.keyspace.view(items, namespace)?.find(&name.1).ok()??;
        Some(found.collection_type())
    }

    /// Executes the waiter's command again for this key.
    fn repeat(&self, waiter: &Arc<Waiter>, key: &[u8]) -> Outcome {
        let mut state = waiter.state.lock();
        if !matches!(*state, State::Waiting) || waiter.record.is_killed() {
            drop(state);
            self.waiters.remove(waiter);
            return Outcome::Over;
        }
        let (request, entry) = (waiter.request.get(0, &[]), waiter.entry);
        let mut session = Session::new(Arc::clone(&waiter.record));
        (session.db, session.protocol) = (waiter.db, waiter.protocol);
        session.waiting = Waiting::Repeated { key: key.to_vec(), finds_nothing: false };
        if self.gate.blocks(entry, &request, &session) {
            return Outcome::Claimed;
        }
        let (mut bytes, mut event_counts) = (Vec::new(), EventCounts::default());
        let announcements = Announcements::default();
        let mut call = Call {
            shared: self,
            session: &mut session,
            entry,
            request,
            reply: Reply::new(&mut bytes, waiter.protocol),
            event_counts: &mut event_counts,
            pending: None,
            announcements: Some(&announcements),
        };
        if let Err(refusal) = call.execute() {
            call.refuse(0, &refusal);
        }
        if matches!(session.waiting, Waiting::Repeated { finds_nothing: true, .. }) {
            return Outcome::Nothing;
        }
        *state = State::Ended(bytes);
        drop(state);
        self.waiters.remove(waiter);
        self.announce_end(waiter);
        // After the reply, which is on its way to the waiter.
        announcements.send(self, &session);
        Outcome::Over
    }

    fn announce_end(&self, waiter: &Waiter) {
        let place = waiter.record.place;
        self.mailboxes.send_to_loop(place.loop_index, LoopMessage::WaitOver(place));
    }

    /// Ends the wait of a client for `CLIENT UNBLOCK`, as if its time were over or with an error; returns false if it
    /// does not wait.
    pub(crate) fn unblock(&self, client_id: u64, with_error: bool) -> bool {
        let Some(waiter) = self.waiters.of_client(client_id) else { return false };
        let reply = match with_error {
            true => waiter.reply(|reply| reply.error(&Refusal::from(FixedError::Unblocked).text())),
            false => waiter.timed_out(),
        };
        let is_ended = !waiter.record.is_killed() && waiter.end(State::Ended(reply));
        if is_ended {
            self.waiters.remove(&waiter);
            self.announce_end(&waiter);
        }
        is_ended
    }

    /// Forgets the wait of a client that leaves.
    pub(crate) fn forget_wait(&self, session: &mut Session) {
        if let Waiting::For(waiter) = mem::take(&mut session.waiting) {
            waiter.end(State::Left);
            self.waiters.remove(&waiter);
        }
    }
}

impl Call<'_> {
    /// Returns whether a command that may wait uses this key now: all of its keys, but one if it is repeated.
    pub(crate) fn is_tried(&self, key: &[u8]) -> bool {
        !matches!(&self.session.waiting, Waiting::Repeated { key: ready, .. } if ready != key)
    }

    /// Returns whether this is the command of a client that waits.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self.session.waiting, Waiting::Repeated { .. })
    }

    /// Has the client wait for a collection of this type with one of the keys in these arguments. Returns false if it
    /// must not wait: in a transaction or a script. The command that is repeated may be another one with the same keys.
    pub(crate) fn wait(
        &mut self,
        request: Option<Requests>,
        awaited: CollectionType,
        indices: Range<usize>,
        deadline: Option<Instant>,
    ) -> bool {
        if let Waiting::Repeated { finds_nothing, .. } = &mut self.session.waiting {
            *finds_nothing = true;
            return true;
        }
        let session = &mut *self.session;
        if self.pending.is_some() || session.is_executing || !session.may_use_background {
            return false;
        }
        let keys: BTreeSet<&[u8]> = indices.map(|index| self.request.argument(index)).collect();
        let names: Vec<Name> = keys.into_iter().map(|key| (session.db, key.to_vec())).collect();
        let request = request.unwrap_or_else(|| {
            let mut copy = Requests::default();
            copy.push_copy(&self.request);
            copy
        });
        let waiter = Arc::new(Waiter {
            record: Arc::clone(&session.record),
            entry: self.entry,
            request,
            db: session.db,
            protocol: session.protocol,
            awaited,
            names,
            deadline,
            state: Mutex::new(State::Waiting),
        });
        self.shared.waiters.add(&waiter);
        session.waiting = Waiting::For(waiter);
        true
    }
}
