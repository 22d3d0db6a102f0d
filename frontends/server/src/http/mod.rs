//! The HTTP port for monitoring: `/metrics`, `/health`, `/live.json` and a live page.
//!
//! One thread does everything, and takes a sample for the page each second. It only reads; a request is one `GET` or
//! `HEAD`, and its connection is closed after the response. Clients' use of resources is bounded: the number of
//! connections (a new one replaces the oldest), the bytes of a request, and the time.
//!
//! The port opens before the store does, so that probes learn that the store is being opened.
//!
//! The port accepts only requests for its own host names ([`hosts`]), and uses TLS if configured.
//!
//! Users who may run `INFO` have access: if the user `default` has a password, a request must contain a user and
//! password (Basic authentication). `/health` needs none, because probes have none.

mod access;
mod exchange;
mod hosts;
mod pages;
mod port;
mod request;
mod response;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};
use parking_lot::Mutex;

use crate::Config;
use crate::administration::start::acl_of;
use crate::connections::listen;
use crate::connections::transport::Certificates;
use crate::shared::Shared;

use hosts::Hosts;
use port::{Port, WAKER};

/// The open HTTP port of a server; dropping it closes it.
pub struct HttpPort {
    addr: SocketAddr,
    is_tls: bool,
    state: Arc<State>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// The state passed to the port's thread.
#[derive(Default)]
struct State {
    is_closing: AtomicBool,
    server: Mutex<Watched>,
}

/// The monitored server.
#[derive(Default)]
enum Watched {
    /// Not started yet.
    #[default]
    Opening,
    /// Present until it has stopped.
    Bound(Weak<Shared>),
}

/// The error for `http-tls` without an address.
const NOWHERE: &str = "TLS is enabled for the HTTP port, but the port has no address; give one with --http";

impl HttpPort {
    /// Opens the port of `config`, if there is one, and serves requests from now on.
    ///
    /// # Errors
    /// An address that cannot be resolved or bound; an address reachable from other hosts without a password
    /// ([`Config::protected`]); an unreadable or invalid ACL or certificate file; TLS without a certificate or an
    /// address; a thread or poller that the operating system refuses.
    pub fn open(config: &Config) -> io::Result<Option<HttpPort>> {
        let Some(addr) = &config.http else {
            return if config.http_tls { Err(io::Error::other(NOWHERE)) } else { Ok(None) };
        };
        let certificates = certificates(config)?;
        let listener = listen::on(addr, config, || Ok(acl_of(config)?.is_open()))?;
        let poll = Poll::new()?;
        let (addr, waker) = (listener.local_addr()?, Waker::new(poll.registry(), WAKER)?);
        let state = Arc::new(State::default());
        let is_tls = certificates.is_some();
        let port = Port::new(listener, poll, Arc::clone(&state), (certificates, Hosts::of(config)))?;
        let thread = thread::Builder::new().name("hikv-http".into()).spawn(move || port.run())?;
        Ok(Some(HttpPort { addr, is_tls, state, waker, thread: Some(thread) }))
    }

    /// Returns the listening address.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// Shows this server from now on.
    pub(crate) fn watch(&self, shared: &Arc<Shared>) {
        *self.state.server.lock() = Watched::Bound(Arc::downgrade(shared));
        // If this fails, the next periodic sample notices the change.
        let _ = self.waker.wake();
    }
}

/// Returns the certificates of the port, if it uses TLS.
fn certificates(config: &Config) -> io::Result<Option<Certificates>> {
    match &config.tls {
        _ if !config.http_tls => Ok(None),
        Some(tls) => Certificates::load(tls.files.clone()).map(Some),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "TLS is enabled for the HTTP port, but there is no certificate; configure a TLS port",
        )),
    }
}

impl Drop for HttpPort {
    fn drop(&mut self) {
        self.state.is_closing.store(true, Ordering::Release);
        let woken = self.waker.wake();
        if let Some(thread) = self.thread.take()
            && woken.is_ok()
        {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the HTTP port's thread panicked");
        }
    }
}
