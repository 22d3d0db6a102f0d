//! The HTTP port, for monitoring: `/metrics`, `/health`, `/live.json` and a page that shows it.
//!
//! One thread does everything, and takes a sample for the page each second. It only reads; a request is one of `GET` or
//! `HEAD`, and its connection is closed after the answer. What clients can hold is bounded: so many connections, the oldest of
//! which goes when there is another; so many bytes of a request; so much time.
//!
//! The port opens before the store does, so that probes are told that it is being opened.
//!
//! The port is asked for by its own names alone ([`hosts`]), and by TLS if so configured.
//!
//! A user who may run `INFO` may look: where the user `default` needs a password, a request brings a user and a password (Basic
//! authentication). `/health` needs none, since probes have none.

mod access;
mod connection;
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

/// What the port's thread is told.
#[derive(Default)]
struct State {
    is_closing: AtomicBool,
    server: Mutex<Watched>,
}

/// The server that is watched.
#[derive(Default)]
enum Watched {
    /// There is none yet.
    #[default]
    Opening,
    /// It is there until it has stopped.
    Bound(Weak<Shared>),
}

/// Said of `http-tls` alone.
const NOWHERE: &str = "the HTTP port is to be served by TLS, and it has no address: --http names one";

impl HttpPort {
    /// Opens the port that `config` names, if it names one, and answers from now on.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound; if it is not of this host alone and everybody could look
    /// ([`Config::protected`]); if the file of users, or a file of a certificate, cannot be read or understood; if TLS is asked
    /// for and there is no certificate, or no address; if the operating system refuses a thread or a poller.
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

    /// The address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// Shows this server from now on.
    pub(crate) fn watch(&self, shared: &Arc<Shared>) {
        *self.state.server.lock() = Watched::Bound(Arc::downgrade(shared));
        // A failure leaves the next second's sample to notice.
        let _ = self.waker.wake();
    }
}

/// Those by which the port is served, if it is by TLS.
fn certificates(config: &Config) -> io::Result<Option<Certificates>> {
    match &config.tls {
        _ if !config.http_tls => Ok(None),
        Some(tls) => Certificates::load(tls.files.clone()).map(Some),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the HTTP port is to be served by TLS, and there is no port for TLS whose certificate it could use",
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
