//! A device that listens.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::{fmt, thread};

use hikv::Store;
use mio::net::TcpListener;
use mio::{Poll, Waker};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::accept::{Acceptor, Mailbox};
use crate::config::Config;
use crate::event_loop::{EventLoop, WAKER};
use crate::limits;
use crate::shared::Shared;
use crate::stop::StopHandle;

/// Files that are not connections.
const RESERVED_FILE_COUNT: u64 = 128;

/// Why a device does not listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address is not this machine's own, and nobody would have to prove who they are.
    Insecure(SocketAddr),
    /// The subsystem's or a host's name is none.
    Name(String),
    /// There can be no socket at this path.
    Shm(PathBuf, rings::ListenError),
    /// The operating system refused.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Insecure(addr) => {
                write!(f, "{addr} can be reached from other machines, and hosts do not prove who they are")
            }
            StartError::Name(name) => {
                write!(f, "'{name}' is no NVMe qualified name: 1 to 223 printable characters without spaces")
            }
            StartError::Shm(path, error) => write!(f, "{}: {error}", path.display()),
            StartError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

/// A device that listens, and serves when it is run.
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
    /// Listens. Hosts can connect from now on, and are served when the device is run.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(store: Store, config: &Config, stop: StopHandle) -> Result<Device, StartError> {
        check_names(config)?;
        let addrs: Vec<SocketAddr> = config.addr.to_socket_addrs()?.collect();
        let open = addrs.iter().find(|addr| !addr.ip().is_loopback());
        if let Some(addr) = open.filter(|_| !config.is_insecure && config.secrets.is_none()) {
            return Err(StartError::Insecure(*addr));
        }
        let files_each = if config.shm.is_some() { 2 } else { 1 };
        let file_limit = raise_file_limit(files_each);
        let listener = listen(&addrs)?;
        let shm = config.shm.as_ref().map(|(path, mode)| listen_at(path, *mode)).transpose()?;
        let addr = listener.local_addr()?;
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
        shared.connection_count_max = places(file_limit, files_each);
        let shared = Arc::new(shared);
        let mut loops: Vec<EventLoop> = polls
            .into_iter()
            .map(|(poll, waker, arrivals)| EventLoop::new(Arc::clone(&shared), poll, waker, arrivals))
            .collect();
        loops[0].accept_from(Acceptor::new(listener, shm, mailboxes)?)?;
        Ok(Device { shared, addr, loops })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The subsystem's name, which hosts connect to.
    #[must_use]
    pub fn subsystem(&self) -> &str {
        &self.shared.subsystem
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// The operating system's, after which the device has stopped.
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

/// Listens at the first of a name's addresses at which that can be done: a machine may know one that it does not have.
fn listen(addrs: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut refused = io::ErrorKind::NotFound.into();
    for addr in addrs {
        match TcpListener::bind(*addr) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn listen_at(path: &Path, mode: u32) -> Result<rings::Listener, StartError> {
    rings::Listener::bind(path, mode).map_err(|error| StartError::Shm(path.to_owned(), error))
}

fn check_names(config: &Config) -> Result<(), StartError> {
    let is_name = |name: &&String| nvme::nqn_of(&[name.as_bytes(), &[0]].concat()).as_ref() == Some(*name);
    match config.subsystem.iter().chain(&config.hosts).find(|name| !is_name(name)) {
        Some(wrong) => Err(StartError::Name(wrong.clone())),
        None => Ok(()),
    }
}

fn thread_count(config: &Config) -> usize {
    let for_processors = || thread::available_parallelism().map_or(1, |count| (NonZero::get(count) - 1).max(1));
    if config.thread_count == 0 { for_processors() } else { config.thread_count }
}

/// Raises the process' soft limit on open files towards what all connections need, of so many files each, and returns what it is then.
fn raise_file_limit(files_each: u64) -> Option<u64> {
    let wanted = limits::CONNECTION_COUNT_MAX as u64 * files_each + RESERVED_FILE_COUNT;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // A refusal leaves the old limit: there are fewer places.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current
}

/// Places for connections of so many files each, where the process may have so many open: the store's own stay free, however many hosts connect.
fn places(file_limit: Option<u64>, files_each: u64) -> usize {
    let most = limits::CONNECTION_COUNT_MAX as u64;
    let room = file_limit.map_or(most, |limit| limit.saturating_sub(RESERVED_FILE_COUNT) / files_each);
    room.clamp(1, most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of `localhost`, where IPv6 is off.
    #[test]
    fn a_name_is_listened_at_by_an_address_that_the_machine_has() {
        let lacking = SocketAddr::from(([192, 0, 2, 1], 0));
        let own = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen(&[lacking, own]).expect("it has the second");
        assert_eq!(listener.local_addr().expect("it listens").ip(), own.ip());
        assert!(listen(&[lacking]).is_err() && listen(&[]).is_err());
    }

    /// A host that shares memory has a socket and what it wakes the device by.
    #[test]
    fn connections_leave_the_store_its_files() {
        assert_eq!(places(None, 2), limits::CONNECTION_COUNT_MAX);
        assert_eq!(places(Some(1 << 20), 2), limits::CONNECTION_COUNT_MAX);
        for (limit, files_each, count) in [(1152, 1, 1024), (1152, 2, 512), (1024, 1, 896), (128, 1, 1), (0, 2, 1)] {
            assert_eq!(places(Some(limit), files_each), count, "{limit} files");
        }
    }
}
