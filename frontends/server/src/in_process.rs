//! A server without sockets, for tests with millions of inputs: the same parser, pipeline and commands.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hikv::Store;
use resp::{Parser, Request};

use crate::clients::session::{Receipt, Session};
use crate::clients::{Peer, Place, Record};
use crate::connections::buffers::Buffers;
use crate::connections::output::Output;
use crate::errors::Refusal;
use crate::execution::background::job::{BackgroundJob, JobThread};
use crate::execution::background::{self, BackgroundJobs};
use crate::execution::claims::Claim;
use crate::execution::client::Client;
use crate::execution::panics;
use crate::execution::pipeline::Pipeline;
use crate::execution::worker::Worker;
use crate::shared::Shared;
use crate::telemetry::EventCounts;
use crate::{Config, Prepared, Server, StopHandle, reclaimer};

/// A server that is called instead of connected to.
pub struct InProcess {
    server: Server,
    buffers: Buffers,
    client_count: u64,
}

impl InProcess {
    /// Creates a server of `store`. It binds the address of `config` but serves no connection there.
    ///
    /// # Errors
    /// As for [`Server::bind`].
    pub fn new(store: Store, config: Config) -> io::Result<InProcess> {
        let server = Server::bind(store, config, StopHandle::new())?;
        Ok(InProcess { server, buffers: Buffers::default(), client_count: 0 })
    }

    /// Like [`InProcess::new`], for a server that reclaims dead elements only by [`InProcess::reclaim`].
    ///
    /// # Errors
    /// As for [`InProcess::new`].
    pub fn without_background(store: Store, config: Config) -> io::Result<InProcess> {
        let server = Server::without_reclaimer(store, Prepared::of(config)?, StopHandle::new())?;
        Ok(InProcess { server, buffers: Buffers::default(), client_count: 0 })
    }

    /// Deletes the elements of deleted collections, and of those that have expired at this time, in milliseconds since
    /// the Unix epoch.
    ///
    /// # Errors
    /// The text of an error of the store.
    pub fn reclaim(&self, now_ms: u64) -> io::Result<()> {
        let shared = self.server.shared();
        let refused = |refusal: Refusal| io::Error::other(String::from_utf8_lossy(&refusal.text()).into_owned());
        // The lane after that of the only loop.
        reclaimer::pass(shared, shared.telemetry.loops.len(), now_ms).map_err(refused)
    }

    /// Returns the bytes that a new client receives which sends `input` and disconnects.
    ///
    /// # Errors
    /// A value that fails while it is sent.
    pub fn answer(&mut self, input: &[u8]) -> io::Result<Vec<u8>> {
        self.client_count += 1;
        let place = Place { loop_index: 0, key: 0, client_id: self.client_count };
        let addr = Peer::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let shared = Arc::clone(self.server.shared());
        let mut session = shared.new_session(Arc::new(Record::new(place, addr.clone(), addr)));
        session.may_use_background = true;
        let mut worker = Worker {
            shared: &shared,
            background: &BackgroundJobs::default(),
            lane: 0,
            counters: &shared.telemetry.loops[0],
            woke: Instant::now(),
            buffers: &mut self.buffers,
        };
        let replies = converse(input, &mut session, &mut worker);
        shared.dismiss(&mut session);
        self.server.take_messages();
        let panic_count = shared.telemetry.panics.load(Ordering::Relaxed);
        assert_eq!(panic_count, 0, "a request has panicked");
        replies
    }
}

fn converse(mut input: &[u8], session: &mut Session, worker: &mut Worker<'_>) -> io::Result<Vec<u8>> {
    let (mut pipeline, mut output, mut replies) = (Pipeline::default(), Output::default(), Vec::new());
    let mut parser = Parser::new(worker.shared.administration.settings.limits());
    while session.can_execute() {
        pipeline.parse(&mut parser, input, false);
        if pipeline.is_done() {
            break;
        }
        while !pipeline.is_done() && session.can_execute() {
            pipeline.run(input, session, worker, &mut output);
            if let Some(job) = session.job.take() {
                run_job(&job, pipeline.request(job.number, input), session, worker.shared, &mut output);
            }
            output.drain_to(&mut replies)?;
            if session.receipt == Receipt::Awaited {
                // It has no connection, and so no messages.
                session.receipt = Receipt::Complete;
            }
        }
        input = &input[pipeline.restart()..];
    }
    output.drain_to(&mut replies)?;
    Ok(replies)
}

/// Executes a background job on the calling thread.
fn run_job(job: &BackgroundJob, request: Request<'_>, session: &mut Session, shared: &Shared, output: &mut Output) {
    let done = panics::catch(|| {
        let has_collections = || shared.keyspace.collections.exist();
        let claim = || Claim::of_job(job.entry, &request, session, has_collections());
        let _claimed = (job.thread == JobThread::Shared).then(|| shared.gate.claim(claim));
        let event_counts = &mut EventCounts::default();
        background::execute(&mut Client { shared, session, event_counts }, job.entry, request, output);
    });
    session.awaits_job = false;
    assert!(done.is_ok(), "a request has panicked");
}
