//! Background jobs: long commands that run outside the event loops, so that a loop can serve its other clients.
//!
//! Nothing more of the job's client is read or executed until its loop receives the message with the reply. The job
//! receives the client's session, pipeline and input ([`ClientState`]), so even a long request is not copied; the loop
//! keeps a placeholder session.
//!
//! Each row of the command table states the factors of the command's duration ([`Cost`]). From that and the current
//! values, `weight` estimates whether a request is long. A command on collections that turns out to be long, because
//! its elements are, starts again in the background (`gathered`). SAVE and DEBUG SLEEP get a thread each: SAVE runs
//! once at a time, DEBUG SLEEP is for tests. All other jobs queue for one thread, which claims the job's keys
//! ([`Claim`]) while it executes. So a transaction of several seconds is isolated as on a loop, and blocks only
//! commands that use its keys, or all keys.
//!
//! A command that is blocked by a claim also becomes a background job, however short, and queues behind the job that
//! blocks it. The queue is first in, first out, and a client has at most one job in it. So a job waits only for jobs
//! that were queued before it, and no client starves.
//!
//! # Lock order
//! The lane of the background jobs, then the claim, then the loops' lanes, one at a time. The queue's lock is a leaf.
//!
//! [`Cost`]: command_table::Cost

pub(crate) mod client_state;
pub(crate) mod job;
pub(crate) mod weight;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use resp::Request;

use crate::clients::Place;
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::execution::claims::Claim;
use crate::execution::client::Client;
use crate::execution::{panics, permission};
use crate::messages::LoopMessage;
use crate::shared::Shared;
use crate::telemetry::EventCounts;
use client_state::{ClientState, JobResult};
use command_table::Entry;
use job::{BackgroundJob, JobThread};

/// A background job with its client's state.
struct QueuedJob {
    job: BackgroundJob,
    client_state: ClientState,
}

impl QueuedJob {
    fn execute(self, shared: &Shared) {
        let QueuedJob { job: BackgroundJob { thread, entry, number, woke }, mut client_state } = self;
        let (mut output, mut event_counts) = (Output::default(), EventCounts::default());
        let ((), ticket) = shared.keyspace.store.deferred(|_| {
            let ClientState { session, pipeline, input } = &mut client_state;
            let request = pipeline.request(number, input.pending());
            let mut client = Client { shared, session, event_counts: &mut event_counts };
            let done = panics::catch(|| {
                let is_shared = thread == JobThread::Shared;
                // Before the claim: a request that sees the claim also sees the script.
                let _holder = client.session.may_run_script(entry).then(|| shared.scripts.hold(shared));
                let has_collections = || shared.keyspace.collections.exist();
                let claim = || Claim::of_job(entry, &request, client.session, has_collections());
                let _claimed = is_shared.then(|| shared.gate.claim(claim));
                execute(&mut client, entry, request, &mut output);
                if client.session.wants_collections {
                    // It was a script, which has had no effect.
                    output.take_back(0);
                    execute(&mut client, entry, request, &mut output);
                }
            });
            {
                let _pass = shared.gate.pass(client.session.record.place.loop_index);
                shared.serve_deferred_waiters();
            }
            if let Err(caught) = done {
                client.abandon(&caught, &request, &mut output, 0);
            }
            shared.observers.tracking.announce(shared.message_access());
        });
        if client_state.session.is_postponed {
            // The client's loop lets the request wait for the end of the pause.
            client_state.pipeline.return_to(number);
        }
        let ticket = ticket.merge(std::mem::take(&mut client_state.session.observed));
        client_state.drop_finished();
        let place: Place = client_state.session.record.place;
        shared.telemetry.loops[place.loop_index].add(event_counts);
        let done = JobResult { client_state, reply: output.into_bytes(), ticket, counts: event_counts.batch, woke };
        shared.mailboxes.send_to_loop(place.loop_index, LoopMessage::JobDone(place, Box::new(done)));
    }
}

/// Answers the request unless it has to wait. First waits for the current turn of the client's loop: a thread that
/// kills clients or changes rights holds all lanes, or locks each afterwards, so later checks see the change.
pub(crate) fn execute(client: &mut Client<'_>, entry: Entry, request: Request<'_>, output: &mut Output) {
    drop(client.shared.gate.pass(client.session.record.place.loop_index));
    if !client.is_still_served() {
        return;
    }
    if client.shared.pause.holds(entry, client.session) {
        client.session.is_postponed = true;
        return;
    }
    match permission::admit(&request, client.session) {
        Ok(_) => match begin_collections(client, entry, &request) {
            Ok(()) => client.answer(entry, request, output),
            Err(refusal) => client.refuse(refusal, &request, output),
        },
        Err(refusal) => client.refuse(refusal, &request, output),
    }
}

/// Creates the tree of collections if the request needs it.
fn begin_collections(client: &mut Client<'_>, entry: Entry, request: &Request<'_>) -> Result<(), Refusal> {
    if !client.shared.needs_collections(entry, request, client.session) {
        return Ok(());
    }
    client.session.wants_collections = false;
    // This is the only background job.
    let _alone = client.shared.gate.close();
    client.shared.begin_collections()
}

/// The threads that execute background jobs.
#[derive(Default)]
pub(crate) struct BackgroundJobs {
    queue: Mutex<Option<Sender<QueuedJob>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl BackgroundJobs {
    /// Starts or queues the job; its client waits for the result.
    pub(crate) fn send(&self, shared: &Arc<Shared>, job: BackgroundJob, client_state: ClientState) {
        let queued = QueuedJob { job, client_state };
        match queued.job.thread {
            JobThread::Own => self.send_to_own_thread(shared, queued),
            JobThread::Shared => self.enqueue(shared, queued),
        }
    }

    fn send_to_own_thread(&self, shared: &Arc<Shared>, queued: QueuedJob) {
        let (sender, jobs) = channel();
        if self.spawn(shared, jobs) {
            // The thread receives it before it exits.
            let _ = sender.send(queued);
        } else {
            queued.execute(shared);
        }
    }

    fn enqueue(&self, shared: &Arc<Shared>, queued: QueuedJob) {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            let (sender, jobs) = channel();
            *queue = self.spawn(shared, jobs).then_some(sender);
        }
        let Some(sender) = queue.as_ref() else {
            drop(queue);
            // If no thread can be created, the loop executes the job itself.
            return queued.execute(shared);
        };
        let sent = sender.send(queued);
        drop(queue);
        if let Err(refused) = sent {
            refused.0.execute(shared);
        }
    }

    /// Starts a thread that executes jobs until the sender is dropped. Returns false if no thread can be created.
    fn spawn(&self, shared: &Arc<Shared>, jobs: Receiver<QueuedJob>) -> bool {
        let shared = Arc::clone(shared);
        let work = move || jobs.into_iter().for_each(|queued| queued.execute(&shared));
        let Ok(thread) = thread::Builder::new().name("hikv-job".into()).spawn(work) else { return false };
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        true
    }

    /// Waits for the running jobs. Call this after all loops have ended.
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::clients::session::Session;
    use crate::connections::input::Input;
    use crate::execution::pipeline::Pipeline;
    use crate::testing;
    use acl::User;
    use command_table as table;

    /// Returns whether a background job is executed if `change` happens while it is queued.
    fn is_done(change: impl FnOnce(&Shared, &Session)) -> bool {
        let (server, _dir) = testing::server();
        let (shared, session) = (server.shared(), testing::session(server.shared()));
        shared.keyspace.store.put("k", "v").expect("the store takes it");
        let mut pipeline = Pipeline::default();
        pipeline.requests.push_words(&["RENAME", "k", "l"]);
        let entry = table::find(&pipeline.request(0, &[])).expect("a command");
        change(shared, &session);
        let job = BackgroundJob { thread: JobThread::Shared, entry, number: 0, woke: Instant::now() };
        QueuedJob { job, client_state: ClientState { session, pipeline, input: Input::default() } }.execute(shared);
        shared.keyspace.store.contains("l").expect("the store answers")
    }

    #[test]
    fn queued_jobs_are_checked_again() {
        assert!(is_done(|_, _| {}), "nothing has changed");
        assert!(!is_done(|shared, _| shared.pause.begin(Duration::from_secs(60), false)), "paused");
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
