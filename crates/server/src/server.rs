use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use hikv::Store;
use mio::net::TcpListener;

use crate::accept::Acceptor;
use crate::event_loop::{EventLoop, Handoff};
use crate::shared::{LoopCounters, Order, Shared};
use crate::{Config, StopHandle, file_limit};

/// A store that listens for Redis clients.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    config: Config,
}

impl Server {
    /// Binds the address; clients may connect from now on, and are answered once [`Server::run`] runs. Has the store's keys
    /// put in order, in the background. Raises the process' limit on open files to what `config.max_clients` needs, as far
    /// as that is allowed.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound; if an earlier order of the store failed.
    pub fn bind(store: Store, config: Config) -> io::Result<Server> {
        let listener = listen(&config.addr)?;
        let order = Order::ask_for(&store).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            store,
            order,
            addr: listener.local_addr()?,
            started: Instant::now(),
            max_clients: file_limit::raise_for(config.max_clients),
            bulk_bytes_max: config.bulk_bytes_max,
            loops: (0..config.threads.max(1)).map(|_| LoopCounters::default()).collect(),
        });
        Ok(Server { listener, shared, config })
    }

    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.addr
    }

    /// Serves until `stop` is used, on the calling thread and on others that have ended when this returns.
    ///
    /// # Errors
    /// If the operating system refuses a poller or a thread; the server then stops as by `stop`.
    pub fn run(self, stop: StopHandle) -> io::Result<()> {
        let mut loops: Vec<EventLoop> = (0..self.shared.loops.len())
            .map(|index| EventLoop::new(index, Arc::clone(&self.shared), stop.clone(), self.config.drain_max))
            .collect::<io::Result<_>>()?;
        let handoffs: Vec<Handoff> = loops.iter().map(EventLoop::handoff).collect();
        loops[0].accept_from(Acceptor::new(self.listener, handoffs, self.shared))?;
        run_all(loops, &stop)
    }
}

fn listen(addr: &str) -> io::Result<TcpListener> {
    let nothing = || io::Error::new(io::ErrorKind::InvalidInput, format!("'{addr}' has no address"));
    let mut outcome = Err(nothing());
    for addr in addr.to_socket_addrs()? {
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
