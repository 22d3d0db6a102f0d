use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use hikv::Store;
use mio::Poll;
use mio::net::TcpListener;

use crate::accept::Acceptor;
use crate::acl::Acl;
use crate::clients::Clients;
use crate::databases::Databases;
use crate::event_loop::{EventLoop, WAKER};
use crate::expirations::Expirations;
use crate::gate::Gate;
use crate::latency::Latency;
use crate::log::Log;
use crate::mail::Mailbox;
use crate::memory::MemoryLimit;
use crate::monitors::Monitors;
use crate::pubsub::PubSub;
use crate::settings::Settings;
use crate::shared::{LoopCounters, Order, Shared};
use crate::slowlog::SlowLog;
use crate::tracking::Tracking;
use crate::watch::Watches;
use crate::{Config, HttpPort, StopHandle, file_limit};

/// A store that listens for Redis clients.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    loops: Vec<EventLoop>,
}

impl Server {
    /// Binds the address; clients may connect from now on, and are answered once [`Server::run`] runs, until `stop` is used.
    /// Has the store's keys put in order, in the background. Raises the process' limit on open files to what
    /// `config.max_clients` needs, as far as that is allowed.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound; if it is not of this host alone and everybody could do everything
    /// ([`Config::protected`]); if the file of users cannot be read or understood; if an earlier order of the store failed;
    /// if the operating system refuses a poller.
    pub fn bind(store: Store, config: Config, stop: StopHandle) -> io::Result<Server> {
        let acl = Acl::load(&config)?;
        let listener = listen(&config, &acl)?;
        let order = Order::ask_for(&store).map_err(io::Error::other)?;
        let loop_count = config.threads.max(1);
        let polls: Vec<Poll> = (0..loop_count).map(|_| Poll::new()).collect::<io::Result<_>>()?;
        let ends: Vec<_> = polls.iter().map(|poll| Mailbox::new(poll, WAKER)).collect::<io::Result<_>>()?;
        let (mailboxes, letters): (Vec<Mailbox>, Vec<_>) = ends.into_iter().unzip();
        let shared = Arc::new(Shared {
            order,
            addr: listener.local_addr()?,
            started: Instant::now(),
            max_clients: file_limit::raise_for(config.max_clients),
            loops: (0..loop_count).map(|_| LoopCounters::default()).collect(),
            mailboxes: mailboxes.into(),
            gate: Gate::new(loop_count),
            databases: Databases::load(&store)?,
            settings: Settings::of(&config),
            acl,
            clients: Clients::default(),
            watches: Watches::default(),
            pubsub: PubSub::default(),
            monitors: Monitors::default(),
            expirations: Expirations::new(),
            tracking: Tracking::default(),
            memory: MemoryLimit::default(),
            slowlog: SlowLog::default(),
            latency: Latency::default(),
            log: Log::default(),
            stop,
            drain_max: config.drain_max,
            store,
        });
        let event_loop = |(index, (poll, letters))| EventLoop::new(index, Arc::clone(&shared), poll, letters);
        let loops = polls.into_iter().zip(letters).enumerate().map(event_loop).collect();
        Ok(Server { listener, shared, loops })
    }

    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.addr
    }

    /// Has the port show this server; before it, the port says that the store is being opened.
    pub fn show_on(&self, port: &HttpPort) {
        port.watch(&self.shared);
    }

    /// Serves until it is stopped, on the calling thread and on others that have ended when this returns.
    ///
    /// # Errors
    /// If the operating system refuses a thread, or a poller fails; the server then stops.
    pub fn run(mut self) -> io::Result<()> {
        let stop = self.shared.stop.clone();
        self.loops[0].accept_from(Acceptor::new(self.listener, self.shared))?;
        run_all(self.loops, &stop)
    }
}

fn listen(config: &Config, acl: &Acl) -> io::Result<TcpListener> {
    let nothing = || io::Error::new(io::ErrorKind::InvalidInput, format!("'{}' has no address", config.addr));
    let mut outcome = Err(nothing());
    for addr in config.addr.to_socket_addrs()? {
        if config.protected && !addr.ip().is_loopback() && acl.is_open() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{addr} can be reached from elsewhere, and there is neither a password nor a file of users"),
            ));
        }
        outcome = TcpListener::bind(addr);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn run_all(mut loops: Vec<EventLoop>, stop: &StopHandle) -> io::Result<()> {
    let others = loops.split_off(1);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut outcome = Ok(());
        for (index, event_loop) in others.into_iter().enumerate() {
            let name = format!("hikv-serve-{}", index + 1);
            match thread::Builder::new().name(name).spawn_scoped(scope, move || event_loop.run()) {
                Ok(thread) => threads.push(thread),
                Err(error) => outcome = Err(error),
            }
        }
        if outcome.is_err() {
            stop.stop();
        }
        for event_loop in loops {
            outcome = outcome.and(event_loop.run());
        }
        for thread in threads {
            outcome = outcome.and(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        outcome
    })
}
