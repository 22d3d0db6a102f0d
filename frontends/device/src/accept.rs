//! Accepts connections and assigns them to the loops.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::Instant;

use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, Waker};
use rings::Listener;

use crate::controller::Controller;
use crate::limits;
use crate::rate_limit::RateLimit;
use crate::shared::Shared;
use crate::socket::Socket;

/// A connection, and the device's address as seen by its host.
pub(crate) type Arrival = (Socket, SocketAddr);

/// Sends new connections to a loop.
pub(crate) struct Mailbox {
    pub(crate) sender: Sender<Arrival>,
    pub(crate) waker: Arc<Waker>,
}

/// The two ways in which hosts connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HostKind {
    Tcp,
    Shm,
}

/// The outcome of one turn of accepting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Accepted {
    /// No host is waiting.
    All,
    /// More may be waiting; they are accepted in the next turn, after connected hosts were served.
    Some,
    /// Hosts are waiting that cannot be accepted now.
    Later,
}

pub(crate) struct Acceptor {
    listener: TcpListener,
    /// The listener for shared-memory hosts, with the device's address as they see it.
    shm: Option<Listener>,
    addr: SocketAddr,
    mailboxes: Vec<Mailbox>,
    next: usize,
    /// Waits for a free slot.
    waiting: Option<Arrival>,
    /// The controller whose slot it waits for.
    ending: Weak<Controller>,
    turned_away: RateLimit,
    unaccepted: RateLimit,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, shm: Option<Listener>, mailboxes: Vec<Mailbox>) -> io::Result<Acceptor> {
        Ok(Acceptor {
            addr: listener.local_addr()?,
            listener,
            shm,
            mailboxes,
            next: 0,
            waiting: None,
            ending: Weak::new(),
            turned_away: RateLimit::default(),
            unaccepted: RateLimit::default(),
        })
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.listener, token, Interest::READABLE)?;
        let shm = self.shm.iter().map(Listener::fd);
        shm.into_iter().try_for_each(|fd| registry.register(&mut SourceFd(&fd), token, Interest::READABLE))
    }

    /// Accepts a waiting host; `WouldBlock` if there is none.
    fn next(&mut self, kind: HostKind) -> io::Result<Arrival> {
        if let Some(waiting) = self.waiting.take() {
            return Ok(waiting);
        }
        match (kind, &self.shm) {
            (HostKind::Tcp, _) => {
                let (socket, _) = self.listener.accept()?;
                // A connection that is already closed is detected when it is read.
                let _ = socket.set_nodelay(true);
                let addr = socket.local_addr().unwrap_or(self.addr);
                Ok((Socket::Tcp(socket), addr))
            }
            (HostKind::Shm, Some(shm)) => Ok((Socket::Shm(Box::new(shm.accept()?)), self.addr)),
            (HostKind::Shm, None) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Accepts waiting hosts, alternating between the two ways, and at most one turn's number. So a host that connects
    /// all the time does not block the loop's other connections, and many hosts by one way do not keep out those of the
    /// other.
    pub(crate) fn accept(&mut self, shared: &Shared) -> Accepted {
        let (mut ways, mut is_refused) = (VecDeque::from([HostKind::Tcp, HostKind::Shm]), false);
        for _ in 0..limits::ACCEPT_COUNT_MAX {
            let Some(kind) = ways.front().copied() else {
                return if is_refused { Accepted::Later } else { Accepted::All };
            };
            match self.next(kind) {
                Ok(arrival) => {
                    if !self.admit(arrival, shared) {
                        return Accepted::Later;
                    }
                    ways.rotate_left(1);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(ways.pop_front()),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
                    ) => {}
                Err(error) => {
                    if let Some(left_out) = self.unaccepted.may_write(Instant::now()) {
                        tracing::warn!(%error, left_out, "cannot accept hosts; retrying");
                    }
                    is_refused = true;
                    ways.pop_front();
                }
            }
        }
        Accepted::Some
    }

    /// Gives a connection to the next loop. If all slots are taken, the connection waits for the slot of a host that
    /// has been silent for long (returns false), and is closed if there is none.
    fn admit(&mut self, arrival: Arrival, shared: &Shared) -> bool {
        if shared.connection_count.fetch_add(1, Ordering::Relaxed) >= shared.connection_count_max {
            shared.connection_count.fetch_sub(1, Ordering::Relaxed);
            if self.frees_slot(shared, Instant::now()) {
                self.waiting = Some(arrival);
                return false;
            }
            if let Some(left_out) = self.turned_away.may_write(Instant::now()) {
                let most = shared.connection_count_max;
                tracing::warn!(most, left_out, "host refused: the maximum number of connections is reached");
            }
            return true;
        }
        let mailbox = &self.mailboxes[self.next];
        self.next = (self.next + 1) % self.mailboxes.len();
        // Both fail only if the loop has ended.
        let _ = mailbox.sender.send(arrival);
        let _ = mailbox.waker.wake();
        true
    }

    /// Returns whether a slot is about to become free. Each waiting host ends at most one silent host, however often
    /// this is called before the loop has closed that host's connections.
    fn frees_slot(&mut self, shared: &Shared, now: Instant) -> bool {
        if self.ending.strong_count() > 0 {
            return true;
        }
        let ended = shared.end_silent(now);
        let is_made = ended.is_some();
        self.ending = ended.unwrap_or_default();
        is_made
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::time::Duration;

    use hikv::{Durability, Options};
    use nvme::ControllerKind;

    use super::*;
    use crate::config::Config;
    use crate::stop::StopHandle;

    fn shared() -> (tempfile::TempDir, Shared) {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let store = Options::new().durability(Durability::Process).open(dir.path()).expect("a store");
        (dir, Shared::new(store, &Config::default(), Vec::new(), StopHandle::new()))
    }

    /// More hosts than one turn accepts by one way, and some by the other.
    #[test]
    fn turn_takes_bounded_number_of_hosts() {
        let (dir, shared) = shared();
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let addr = listener.local_addr().expect("it listens");
        let shm = Listener::bind(&dir.path().join("socket"), 0o600).expect("a path");
        let by_shm: Vec<_> = (0..3).map(|_| UnixStream::connect(shm.path()).expect("it listens")).collect();
        let by_tcp: Vec<_> =
            (0..limits::ACCEPT_COUNT_MAX).map(|_| TcpStream::connect(addr).expect("it listens")).collect();
        let poll = mio::Poll::new().expect("a poller");
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).expect("a waker"));
        let (sender, arrivals) = mpsc::channel();
        let mut acceptor = Acceptor::new(listener, Some(shm), vec![Mailbox { sender, waker }]).expect("it listens");
        assert_eq!(acceptor.accept(&shared), Accepted::Some);
        let first: Vec<Arrival> = arrivals.try_iter().collect();
        assert!(first.len() <= limits::ACCEPT_COUNT_MAX, "{} in one turn", first.len());
        assert_eq!(first.iter().filter(|(socket, _)| matches!(socket, Socket::Shm(_))).count(), by_shm.len());
        assert_eq!(acceptor.accept(&shared), Accepted::All);
        assert_eq!(first.len() + arrivals.try_iter().count(), by_tcp.len() + by_shm.len());
    }

    #[test]
    fn one_silent_host_makes_place_for_one() {
        let (_dir, shared) = shared();
        let made = || shared.add_controller(ControllerKind::Io, ("a".to_owned(), [7; 16]), 0).expect("there is space");
        // Their connections keep them alive.
        let (first, second) = (made(), made());
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let mut acceptor = Acceptor::new(listener, None, Vec::new()).expect("it listens");
        let later = Instant::now() + limits::SILENCE_MAX + Duration::from_secs(1);
        (0..3).for_each(|_| assert!(acceptor.frees_slot(&shared, later)));
        assert_eq!([first.is_over(), second.is_over()].iter().filter(|is_over| **is_over).count(), 1);
        let (ended, other) = if first.is_over() { (first, second) } else { (second, first) };
        drop(ended);
        assert!(acceptor.frees_slot(&shared, later) && other.is_over());
        drop(other);
        assert!(!acceptor.frees_slot(&shared, later), "nobody is there");
    }
}
