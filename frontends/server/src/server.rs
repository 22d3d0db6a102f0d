use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hikv::Store;
use mio::Poll;
use mio::net::{TcpListener, UnixListener};

use crate::administration::log::Log;
use crate::administration::settings::Settings;
use crate::administration::start::{ConfigFile, settings_of};
use crate::administration::{Administration, file_limit};
use crate::clients::Clients;
use crate::connections::accept::{Acceptor, ListeningSocket};
use crate::connections::backlog::Backlogs;
use crate::connections::event_loop::{EventLoop, Times, WAKER};
use crate::connections::listen;
use crate::connections::transport::TlsReload;
use crate::connections::unix::{Bound, SocketFile};
use crate::execution::background::BackgroundJobs;
use crate::execution::gate::Gate;
use crate::execution::panics;
use crate::execution::pause::Pause;
use crate::execution::waiters::Waiters;
use crate::keyspace::Keyspace;
use crate::messages::{Mailbox, Mailboxes};
use crate::observers::Observers;
use crate::observers::expired::ExpiryReports;
use crate::reclaimer::Reclaimer;
use crate::scripts::Scripts;
use crate::shared::Shared;
use crate::telemetry::{Loops, Telemetry};
use crate::{Config, HttpPort, Prepared, StopHandle, pool};

/// A store that serves Redis clients.
pub struct Server {
    listeners: Vec<TcpListener>,
    tls_listeners: Vec<TcpListener>,
    unix_listener: Option<(UnixListener, SocketFile)>,
    shared: Arc<Shared>,
    background: Arc<BackgroundJobs>,
    loops: Vec<EventLoop>,
    /// Ends its thread when the server is dropped.
    reclaimer: Option<Reclaimer>,
    _expiry_reports: ExpiryReports,
}

impl Server {
    /// Prepares `config` and calls [`Server::on`].
    ///
    /// # Errors
    /// As for [`Prepared::of`] and [`Server::on`].
    pub fn bind(store: Store, config: Config, stop: StopHandle) -> io::Result<Server> {
        Server::on(store, Prepared::of(config)?, stop)
    }

    /// Creates a server of the store. Clients may connect from now on, and are served while [`Server::run`] runs, until
    /// `stop` is used. Raises the process' limit on open files for `config.max_clients`, as far as permitted.
    ///
    /// # Errors
    /// An address on which it can no longer listen; a request for order from a store without; a poller that the
    /// operating system refuses.
    pub fn on(store: Store, prepared: Prepared, stop: StopHandle) -> io::Result<Server> {
        let mut server = Server::without_reclaimer(store, prepared, stop)?;
        // The lane after those of the loops.
        server.reclaimer = Some(Reclaimer::start(&server.shared, server.loops.len())?);
        Ok(server)
    }

    /// Creates a server without the thread that deletes dead elements.
    pub(crate) fn without_reclaimer(store: Store, prepared: Prepared, stop: StopHandle) -> io::Result<Server> {
        panics::watch();
        let Prepared { config, acl, certificates, bound, tls_bound, unix_bound } = prepared;
        let (listeners, tls_listeners) = (listen::at(bound)?, listen::at(tls_bound)?);
        let unix_listener = unix_bound.map(Bound::listen).transpose()?;
        let port = |listeners: &[TcpListener]| addrs(listeners).next().map(|addr| addr.port());
        let (port, tls_port) = (port(&listeners), port(&tls_listeners));
        let keyspace = Keyspace::of(store, config.ordered, config.backup_dir.clone())?;
        let loop_count = pool::loop_count(&config);
        let pool = pool::of_loops(&keyspace.store, &config).map_err(io::Error::other)?;
        let polls: Vec<Poll> = (0..loop_count).map(|_| Poll::new()).collect::<io::Result<_>>()?;
        let ends: Vec<_> = polls.iter().map(|poll| Mailbox::new(poll, WAKER)).collect::<io::Result<_>>()?;
        let (mailboxes, messages): (Vec<Mailbox>, Vec<_>) = ends.into_iter().unzip();
        let administration = Administration {
            settings: settings(&config, port, tls_port),
            acl,
            log: Log::default(),
            config_file: config.parameters.file().map(|path| ConfigFile::new(path.to_owned())),
            certificates: certificates.map(Arc::new),
            port,
        };
        let shared = Arc::new(Shared {
            keyspace,
            clients: Clients::default(),
            observers: Observers::default(),
            mailboxes: Mailboxes::new(mailboxes),
            backlogs: Backlogs::default(),
            // The last lane is that of the reclaimer.
            gate: Gate::new(loop_count + 1),
            pause: Pause::new(),
            waiters: Waiters::default(),
            scripts: Scripts::default(),
            administration,
            telemetry: Telemetry::new(Loops::new(loop_count)),
            pool,
            split: config.split,
            stop,
        });
        hikv::FrontEnd::of(&shared.keyspace.store).set_user_of_stored_keys(Arc::<Shared>::downgrade(&shared));
        shared.adopt_catalog();
        let expiry_reports = ExpiryReports::start(&shared).map_err(io::Error::other)?;
        let background = Arc::new(BackgroundJobs::default());
        let handshake_max = config.tls.as_ref().map_or(Duration::ZERO, |tls| tls.handshake_max);
        let times = Times { drain_max: config.drain_max, handshake_max };
        let event_loop =
            |(index, ends)| EventLoop::new(index, (Arc::clone(&shared), Arc::clone(&background)), times, ends);
        let loops = polls.into_iter().zip(messages).enumerate().map(event_loop).collect();
        let (reclaimer, _expiry_reports) = (None, expiry_reports);
        Ok(Server { listeners, tls_listeners, unix_listener, shared, background, loops, reclaimer, _expiry_reports })
    }

    /// Returns the listening addresses without TLS.
    pub fn local_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        addrs(&self.listeners)
    }

    /// Returns the listening addresses with TLS.
    pub fn local_tls_addrs(&self) -> impl Iterator<Item = SocketAddr> {
        addrs(&self.tls_listeners)
    }

    /// Returns the path of the Unix socket, if there is one.
    pub fn local_unix(&self) -> Option<PathBuf> {
        self.unix_listener.as_ref().map(|(_, file)| file.shown())
    }

    /// Returns a handle that reloads the files of [`Config::tls`] after a certificate was renewed.
    pub fn tls_reload(&self) -> Option<TlsReload> {
        self.shared.administration.certificates.clone().map(TlsReload::new)
    }

    #[cfg(any(test, feature = "in-process"))]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Processes the messages between event loops.
    #[cfg(any(test, feature = "in-process"))]
    pub(crate) fn take_messages(&mut self) {
        self.loops.iter_mut().for_each(|event_loop| while event_loop.take_messages() {});
    }

    /// Shows this server on the port; until then the port reports that the store is being opened.
    pub fn show_on(&self, port: &HttpPort) {
        port.watch(&self.shared);
    }

    /// Serves until stopped, on the calling thread and on others that have ended when this returns. A running backup is
    /// completed.
    ///
    /// # Errors
    /// A thread that the operating system refuses, or a failed poller; the server then stops.
    pub fn run(mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let certificates = shared.administration.certificates.clone();
        for listener in self.listeners {
            self.loops[0].accept_from(Acceptor::new(ListeningSocket::Tcp(listener), Arc::clone(&shared), None))?;
        }
        for listener in self.tls_listeners {
            self.loops[0].accept_from(Acceptor::new(
                ListeningSocket::Tcp(listener),
                Arc::clone(&shared),
                certificates.clone(),
            ))?;
        }
        if let Some((listener, file)) = self.unix_listener {
            self.loops[0].accept_from(Acceptor::new(
                ListeningSocket::Unix(listener, file),
                Arc::clone(&shared),
                None,
            ))?;
        }
        let outcome = run_all(self.loops, &shared.stop);
        shared.pool.work().leave();
        self.background.finish();
        shared.keyspace.saves.finish();
        outcome
    }
}

fn addrs(listeners: &[TcpListener]) -> impl Iterator<Item = SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok())
}

/// Returns the settings of a server, with the actual ports if free ones were requested.
fn settings(config: &Config, port: Option<u16>, tls_port: Option<u16>) -> Settings {
    config.parameters.warn();
    let settings = settings_of(config);
    let clients_max = file_limit::raise_for(config.max_clients, config.threads.max(1));
    if clients_max < config.max_clients {
        let asked = config.max_clients;
        tracing::warn!(
            asked,
            clients_max,
            "maxclients lowered by the limit on open files; raise it with ulimit -n or LimitNOFILE"
        );
        settings.set("maxclients", clients_max.to_string());
    }
    for (name, port) in [("port", port), ("tls-port", tls_port)] {
        port.iter().for_each(|port| settings.show(name, port.to_string()));
    }
    settings
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use crate::testing;

    use super::*;

    #[test]
    fn loop_that_dies_takes_server_along() {
        for index in 0..2 {
            let (mut server, _dir) = testing::server();
            server.loops[index].die();
            let (ended, end) = mpsc::channel();
            thread::spawn(move || ended.send(catch_unwind(AssertUnwindSafe(|| server.run())).is_err()));
            assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "loop {index}");
        }
    }
}
