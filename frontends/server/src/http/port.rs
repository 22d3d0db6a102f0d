//! The thread of the HTTP port: connections, and one sample per second.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use super::exchange::{Exchange, Progress};
use super::hosts::Hosts;
use super::pages::Pages;
use super::{State, Watched};
use crate::connections::transport::{Certificates, Transport};
use crate::shared::Shared;

/// Maximum number of connections: scrapers, probes and a few people's pages.
const CONNECTION_COUNT_MAX: usize = 64;

/// Events taken at a time: all connections, the listener and the waker.
const EVENT_COUNT_MAX: usize = CONNECTION_COUNT_MAX + 2;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// A connection's token is its index in `connections`.
const LISTENER: Token = Token(usize::MAX);
pub(super) const WAKER: Token = Token(usize::MAX - 1);

pub(super) struct Port {
    listener: TcpListener,
    poll: Poll,
    state: Arc<State>,
    /// Set if the port uses TLS; replaced by the server's certificates once it exists.
    certificates: Option<Certificates>,
    hosts: Hosts,
    connections: Slab<Exchange>,
    pages: Pages,
}

impl Port {
    pub(super) fn new(
        mut listener: TcpListener,
        poll: Poll,
        state: Arc<State>,
        (certificates, hosts): (Option<Certificates>, Hosts),
    ) -> std::io::Result<Port> {
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Port { listener, poll, state, certificates, hosts, connections: Slab::new(), pages: Pages::default() })
    }

    /// Serves until the port is dropped.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENT_COUNT_MAX);
        let mut next_sample = Instant::now();
        while !self.state.is_closing.load(Ordering::Acquire) {
            let now = Instant::now();
            if now >= next_sample {
                next_sample = now + SAMPLE_INTERVAL;
                self.sample(now);
            }
            match self.poll.poll(&mut events, Some(next_sample.saturating_duration_since(now))) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    tracing::error!(%error, "HTTP port closed: its poller failed");
                    return;
                }
                _ => self.note(&events),
            }
        }
    }

    /// Runs once per second: extends the history, and closes connections that are too slow.
    fn sample(&mut self, now: Instant) {
        if let Some(shared) = watched(&self.state).1 {
            self.pages.sample(&shared);
        }
        self.connections.retain(|_, connection| !connection.is_late(now));
        // After a shortage of files, no event reports waiting connections.
        self.accept();
    }

    fn note(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                WAKER => {}
                LISTENER => self.accept(),
                Token(key) => self.advance(key),
            }
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, addr)) => self.adopt(socket, addr),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => return,
            }
        }
    }

    fn adopt(&mut self, socket: TcpStream, addr: SocketAddr) {
        if self.connections.len() == CONNECTION_COUNT_MAX
            && let Some(oldest) =
                self.connections.iter().min_by_key(|(_, connection)| connection.deadline).map(|it| it.0)
        {
            self.connections.remove(oldest);
        }
        // On failure the connection is dropped, which closes it.
        let Ok(mut transport) = self.transport(socket) else { return };
        let entry = self.connections.vacant_entry();
        if transport.register(&self.poll, Token(entry.key())).is_ok() {
            entry.insert(Exchange::new(transport, addr));
        }
    }

    fn transport(&self, socket: TcpStream) -> std::io::Result<Transport> {
        let server =
            self.certificates.as_ref().and_then(|_| watched(&self.state).1?.administration.certificates.clone());
        Transport::new(socket, server.as_deref().or(self.certificates.as_ref()))
    }

    /// An event may belong to a closed connection; for its successor it is spurious.
    fn advance(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (pages, state, hosts, local_ip) = (&self.pages, &self.state, &self.hosts, connection.local_ip());
        let progress = connection.advance(&mut |request| {
            hosts.refusal(&request.host, local_ip).unwrap_or_else(|| {
                let (is_opening, shared) = watched(state);
                pages.answer(request, is_opening, shared.as_deref())
            })
        });
        if progress == Progress::Over {
            if let (Some((addr, error)), Some(shared)) = (connection.failed_handshake(), watched(state).1) {
                shared.administration.log.handshake_failed("http", &addr, error);
            }
            self.connections.remove(key);
        }
    }
}

/// Returns whether the server does not exist yet, and the server if it does.
fn watched(state: &State) -> (bool, Option<Arc<Shared>>) {
    match &*state.server.lock() {
        Watched::Opening => (true, None),
        Watched::Bound(shared) => (false, shared.upgrade()),
    }
}
