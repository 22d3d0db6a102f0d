//! Commands that take long, executed beside the event loops: a loop goes on with its other clients meanwhile.
//!
//! The client that asked is *away*: nothing more of it is read or executed until the letter with the reply has come. All that
//! the client has before it goes along ([`Desk`]), a request of any length without being copied; the loop keeps a stand-in for
//! its session.
//!
//! Each row of the table says what a command's time depends on ([`Takes`]); `weight` tells from that, and from what the keys hold,
//! whether a request takes long. There are two ways. SAVE and DEBUG SLEEP have a thread each: the first runs once at a time, the
//! second is for tests. All others queue for one thread. That thread claims an errand's keys ([`Claim`]) while executing it. So a
//! transaction of several seconds is as much alone as one on a loop, and keeps out only commands that touch its keys, or all keys.
//!
//! A command that is kept out becomes an errand as well, however short, and queues behind what keeps it out. The queue's order is
//! that of arrival, and a client has one errand in it at most. So an errand waits only for those that came before, however many
//! come after: no client starves.
//!
//! # Lock order
//! The errands' lane, then the claim, then the loops' lanes, one at a time. The queue's lock is a leaf.
//!
//! [`Takes`]: crate::table::Takes

pub(crate) mod desk;
pub(crate) mod errand;
pub(crate) mod weight;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use crate::clients::Place;
use crate::clients::session::Session;
use crate::connections::output::Output;
use crate::execution::claims::Claim;
use crate::execution::dispatch::Execution;
use crate::execution::panics::{self, Abandoned};
use crate::execution::permission;
use crate::mail::Letter;
use crate::shared::Shared;
use crate::telemetry::Tally;
use desk::{Desk, Done};
use errand::{Errand, Way};

/// An errand on its way to the thread that does it.
struct Job {
    errand: Errand,
    desk: Desk,
}

impl Job {
    fn do_it(self, shared: &Shared) {
        let Job { errand: Errand { way, entry, number, woke }, mut desk } = self;
        let (mut output, mut tally) = (Output::default(), Tally::default());
        let ((), ticket) = shared.keyspace.store.deferred(|_| {
            let (request, session) = (desk.pipeline.request(number, desk.input.pending()), &mut desk.session);
            let done = panics::catch(|| {
                let _claimed = (way == Way::Queued).then(|| shared.gate.claim(Claim::of(entry, &request, session)));
                await_turn(session, shared);
                if !permission::stays(session, shared) {
                    return;
                }
                match permission::admit(&request, session) {
                    Ok(_) => Execution::answered(entry, request, session, shared, &mut output, &mut tally),
                    Err(refusal) => {
                        permission::refuse(refusal, &request, session, shared, &mut output, &mut tally);
                    }
                }
            });
            if let Err(caught) = done {
                let request = desk.pipeline.request(number, desk.input.pending());
                Abandoned { request, start: 0 }.answer(&caught, &mut desk.session, shared, &mut output, &mut tally);
            }
            shared.observers.tracking.announce(shared.ways());
        });
        let ticket = ticket.merge(std::mem::take(&mut desk.session.heard));
        desk.tidy();
        let place: Place = desk.session.record.place;
        shared.telemetry.loops[place.loop_index].add(tally);
        let done = Done { desk, reply: output.into_bytes(), ticket, counts: tally.batch, woke };
        shared.post.give(place.loop_index, Letter::Done(place, Box::new(done)));
    }
}

/// Waits for the turn that the client's loop is at. A thread that kills clients or changes rights has all lanes, or takes each once it has
/// done so: what follows sees it.
fn await_turn(session: &Session, shared: &Shared) {
    drop(shared.gate.pass(session.record.place.loop_index));
}

/// The threads that do errands.
#[derive(Default)]
pub(crate) struct Errands {
    queue: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Errands {
    /// Has the errand done; its client is away until then.
    pub(crate) fn send(&self, shared: &Arc<Shared>, errand: Errand, desk: Desk) {
        let job = Job { errand, desk };
        match job.errand.way {
            Way::Apart => self.send_apart(shared, job),
            Way::Queued => self.enqueue(shared, job),
        }
    }

    fn send_apart(&self, shared: &Arc<Shared>, job: Job) {
        let (sender, jobs) = channel();
        if self.spawn(shared, jobs) {
            // The thread takes it before it ends.
            let _ = sender.send(job);
        } else {
            job.do_it(shared);
        }
    }

    fn enqueue(&self, shared: &Arc<Shared>, job: Job) {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            let (sender, jobs) = channel();
            *queue = self.spawn(shared, jobs).then_some(sender);
        }
        let Some(sender) = queue.as_ref() else {
            drop(queue);
            // Without a thread the loop waits.
            return job.do_it(shared);
        };
        let sent = sender.send(job);
        drop(queue);
        if let Err(refused) = sent {
            refused.0.do_it(shared);
        }
    }

    /// A thread that does errands as long as there is a sender; false if there is none to be had.
    fn spawn(&self, shared: &Arc<Shared>, jobs: Receiver<Job>) -> bool {
        let shared = Arc::clone(shared);
        let work = move || jobs.into_iter().for_each(|job| job.do_it(&shared));
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::administration::acl::User;
    use crate::connections::input::Input;
    use crate::execution::pipeline::Pipeline;
    use crate::{table, testing};

    /// Whether an errand is executed if `change` happens while it waits in the queue.
    fn is_done(change: impl FnOnce(&Shared, &Session)) -> bool {
        let (server, _dir) = testing::server();
        let (shared, session) = (server.shared(), testing::session(server.shared()));
        shared.keyspace.store.put("k", "v").expect("the store takes it");
        let mut pipeline = Pipeline::default();
        pipeline.requests.push_words(&["RENAME", "k", "l"]);
        let entry = table::find(&pipeline.request(0, &[])).expect("a command");
        change(shared, &session);
        let errand = Errand { way: Way::Queued, entry, number: 0, woke: Instant::now() };
        Job { errand, desk: Desk { session, pipeline, input: Input::default() } }.do_it(shared);
        shared.keyspace.store.contains("l").expect("the store answers")
    }

    #[test]
    fn errands_are_judged_again_behind_the_queue() {
        assert!(is_done(|_, _| {}), "nothing has changed");
        assert!(!is_done(|_, session| session.record.kill()), "killed");
        let change_user = |shared: &Shared, rule: &[u8]| {
            let user = shared.administration.acl.user("default").expect("it is there");
            let mut user = User::clone(&user);
            user.apply(rule).expect("a rule");
            shared.administration.acl.put(user);
        };
        assert!(!is_done(|shared, _| change_user(shared, b"-rename")), "forbidden");
        assert!(!is_done(|shared, _| change_user(shared, b"resetkeys")), "no keys");
        assert!(is_done(|shared, _| change_user(shared, b"-get")), "another right");
    }
}
