//! A listening device.

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::{fmt, thread};

use hikv::Store;
use mio::{Poll, Waker};

use crate::accept::{Acceptor, Mailbox};
use crate::config::Config;
use crate::event_loop::{EventLoop, WAKER};
use crate::listening::Listening;
use crate::shared::Shared;
use crate::stop::StopHandle;

/// Why a device cannot listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address is reachable from other machines, and hosts need not authenticate.
    Insecure(SocketAddr),
    /// The name of the subsystem or of a host is invalid.
    Name(String),
    /// The address cannot be listened on.
    Listen(io::Error),
    /// No socket can be created at this path.
    Shm(PathBuf, rings::ListenError),
    /// An error of the operating system.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Insecure(addr) => {
                write!(f, "{addr} is reachable from other machines, but hosts need not authenticate")
            }
            StartError::Name(name) => {
                write!(
                    f,
                    "'{name}' is not an NVMe qualified name: expected 1 to 223 printable characters without spaces"
                )
            }
            StartError::Shm(path, error) => write!(f, "{}: {error}", path.display()),
            StartError::Listen(error) | StartError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

/// A listening device, which serves when it is run.
pub struct Device {
    shared: Arc<Shared>,
    addr: SocketAddr,
    loops: Vec<EventLoop>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Device {
    /// Starts listening. Hosts can connect from now on, and are served while the device runs.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(store: Store, config: &Config, stop: StopHandle) -> Result<Device, StartError> {
        Device::at(Listening::bind(config)?, store, config, stop)
    }

    /// Creates a device on sockets that were bound before.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn at(listening: Listening, store: Store, config: &Config, stop: StopHandle) -> Result<Device, StartError> {
        let Listening { tcp, shm, connection_count_max } = listening;
        let addr = tcp.local_addr()?;
        let (mut polls, mut mailboxes, mut wakers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..thread_count(config) {
            let poll = Poll::new()?;
            let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
            let (sender, arrivals) = mpsc::channel();
            mailboxes.push(Mailbox { sender, waker: Arc::clone(&waker) });
            wakers.push(Arc::clone(&waker));
            polls.push((poll, waker, arrivals));
        }
        let mut shared = Shared::new(store, config, wakers, stop);
        shared.connection_count_max = connection_count_max;
        let shared = Arc::new(shared);
        let mut loops: Vec<EventLoop> = polls
            .into_iter()
            .map(|(poll, waker, arrivals)| EventLoop::new(Arc::clone(&shared), poll, waker, arrivals))
            .collect();
        loops[0].accept_from(Acceptor::new(tcp, shm, mailboxes)?)?;
        Ok(Device { shared, addr, loops })
    }

    /// Returns the listening address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the subsystem's name, to which hosts connect.
    #[must_use]
    pub fn subsystem(&self) -> &str {
        &self.shared.subsystem
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// An error of the operating system; the device has then stopped.
    pub fn run(self) -> io::Result<()> {
        let Device { loops, shared, .. } = self;
        let outcomes = thread::scope(|scope| {
            let named = |number| thread::Builder::new().name(format!("hikv-device-{number}"));
            let threads: Vec<_> = loops
                .into_iter()
                .enumerate()
                .map(|(number, event_loop)| named(number).spawn_scoped(scope, move || event_loop.run()))
                .collect();
            if threads.iter().any(Result::is_err) {
                shared.stop.stop();
            }
            threads.into_iter().map(|thread| thread?.join().expect("a loop does not panic")).collect::<Vec<_>>()
        });
        outcomes.into_iter().collect()
    }
}

fn thread_count(config: &Config) -> usize {
    let for_processors = || thread::available_parallelism().map_or(1, |count| (NonZero::get(count) - 1).max(1));
    if config.thread_count == 0 { for_processors() } else { config.thread_count }
}
