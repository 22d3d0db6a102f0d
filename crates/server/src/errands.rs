//! Commands that take long, executed beside the event loops: a loop goes on with its other clients meanwhile.
//!
//! The client that asked is *away*: nothing more of it is read or executed until the letter with the reply has come. The loop
//! keeps its session; the command gets a stand-in ([`Session::stand_in`]).
//!
//! There are two ways. SAVE and DEBUG SLEEP have a thread each: the first runs once at a time, the second is for tests. All
//! others queue for one thread, and hold the gate's errand lane, so that who must be alone still is: EXEC, say. No loop waits
//! for that lane, which may take seconds; the client that must be alone is postponed instead ([`crate::gate`]).
//!
//! Within a transaction, and where a client has said which replies it wants, everything is executed on the loop.
//!
//! # Lock order
//! The errand lane, then the loops' lanes. The queue's lock is a leaf.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use hikv::Ticket;
use parking_lot::Mutex;
use resp::{Request, Requests};

use crate::mail::{Letter, Mailbox, Place};
use crate::output::Output;
use crate::pipeline;
use crate::session::{Replies, Session};
use crate::shared::{Shared, Tally};
use crate::table::Entry;
use crate::telemetry::BatchCounts;

/// Values from this length on take long to be written: several milliseconds.
const LONG_BYTES_MIN: u64 = 8 << 20;

/// How an errand is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Queued,
    /// On a thread of its own, and beside whoever is alone.
    Apart,
}

/// A command on its way to the thread that executes it.
pub(crate) struct Errand {
    way: Way,
    entry: Entry,
    request: Requests,
    session: Session,
    woke: Instant,
}

/// What came of it.
pub(crate) struct Done {
    pub(crate) reply: Vec<u8>,
    pub(crate) ticket: Ticket,
    pub(crate) counts: BatchCounts,
    /// When the poller reported the request.
    pub(crate) woke: Instant,
}

/// The threads that do errands.
#[derive(Default)]
pub(crate) struct Errands {
    queue: Mutex<Option<Sender<Errand>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Errand {
    /// The command as an errand, if it takes long and the client may wait for it.
    pub(crate) fn of(
        entry: Entry,
        request: &Request<'_>,
        session: &Session,
        shared: &Shared,
        woke: Instant,
    ) -> Option<Errand> {
        let way = way_of(entry.command.name, request)?;
        let may_leave = session.may_be_away && session.transaction.is_none() && session.replies == Replies::On;
        if !may_leave || way == Way::Queued && !is_long(entry, request, session, shared) {
            return None;
        }
        let mut copy = Requests::default();
        copy.push_copy(request);
        Some(Errand { way, entry, request: copy, session: session.stand_in(), woke })
    }

    fn do_it(mut self, shared: &Shared) {
        let (mut output, mut tally) = (Output::default(), Tally::default());
        let ((), ticket) = shared.store.deferred(|_| {
            let _lane = (self.way == Way::Queued).then(|| shared.gate.errand());
            let request = self.request.get(0, &[]);
            pipeline::answer(self.entry, request, &mut self.session, shared, &mut output, &mut tally);
        });
        let place: Place = self.session.record.place;
        shared.loops[place.loop_index].add(tally);
        let done = Done { reply: output.into_bytes(), ticket, counts: tally.batch, woke: self.woke };
        shared.mailboxes[place.loop_index].give(Letter::Done(place, Box::new(done)));
        if self.way == Way::Queued {
            // Some may wait for the lane.
            shared.mailboxes.iter().for_each(Mailbox::wake);
        }
    }
}

/// How a command is executed that may take long.
fn way_of(name: &str, request: &Request<'_>) -> Option<Way> {
    match name {
        "save" => Some(Way::Apart),
        "debug" if request.len() > 1 && request.argument(1).eq_ignore_ascii_case(b"sleep") => Some(Way::Apart),
        "append" | "bitfield" | "bitop" | "keys" | "lcs" | "setbit" | "setrange" => Some(Way::Queued),
        _ => None,
    }
}

/// Whether it takes long as it was asked for: as far as that can be told without doing it.
fn is_long(entry: Entry, request: &Request<'_>, session: &Session, shared: &Shared) -> bool {
    let held_bytes = |index: usize| {
        let slot = shared.databases.slot(session.db);
        let reader = (index < request.len()).then(|| shared.store.reader(slot.raw(request.argument(index))));
        reader.and_then(Result::ok).flatten().map_or(0, |reader| reader.len_bytes())
    };
    let number = |index: usize| {
        (index < request.len())
            .then(|| resp::parse_integer(request.argument(index)))
            .flatten()
            .map_or(0, |number| number.max(0) as u64)
    };
    let is_long = |bytes: u64| bytes >= LONG_BYTES_MIN;
    match entry.command.name {
        "setrange" => is_long(number(2)) || is_long(held_bytes(1)),
        "setbit" => is_long(number(2) / 8) || is_long(held_bytes(1)),
        "append" | "bitfield" => is_long(held_bytes(1)),
        "bitop" => (3..request.len()).any(|index| is_long(held_bytes(index))),
        // It takes as many steps as the product of both lengths, and KEYS as many as there are keys.
        "lcs" => is_long(held_bytes(1).saturating_mul(held_bytes(2))),
        _ => true,
    }
}

impl Errands {
    /// Has the errand done; its client is away until then.
    pub(crate) fn send(&self, shared: &Arc<Shared>, errand: Errand) {
        match errand.way {
            Way::Apart => self.send_apart(shared, errand),
            Way::Queued => self.enqueue(shared, errand),
        }
    }

    fn send_apart(&self, shared: &Arc<Shared>, errand: Errand) {
        let (sender, errands) = channel();
        if self.spawn(shared, errands) {
            // The thread takes it before it ends.
            let _ = sender.send(errand);
        } else {
            errand.do_it(shared);
        }
    }

    fn enqueue(&self, shared: &Arc<Shared>, errand: Errand) {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            let (sender, errands) = channel();
            *queue = self.spawn(shared, errands).then_some(sender);
        }
        let Some(sender) = queue.as_ref() else {
            drop(queue);
            // Without a thread the loop waits.
            return errand.do_it(shared);
        };
        let sent = sender.send(errand);
        drop(queue);
        if let Err(refused) = sent {
            refused.0.do_it(shared);
        }
    }

    /// A thread that does errands as long as there is a sender; false if there is none to be had.
    fn spawn(&self, shared: &Arc<Shared>, errands: Receiver<Errand>) -> bool {
        let shared = Arc::clone(shared);
        let work = move || errands.into_iter().for_each(|errand| errand.do_it(&shared));
        let Ok(thread) = thread::Builder::new().name("hikv-errand".into()).spawn(work) else { return false };
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        true
    }

    /// Waits for the errands that are under way, once there are no loops that would send more.
    pub(crate) fn finish(&self) {
        drop(self.queue.lock().take());
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}
