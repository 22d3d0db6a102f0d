//! `hikv serve`.

use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use clap::Args;
use hikv::{JournalStats, Store};
use indicatif::{HumanBytes, HumanCount};
use sd_notify::NotifyState;
use server::{Config, HttpPort, LogControl, Secret, Server, StopHandle};

use crate::durable::Durable;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::logging::Logging;
use crate::opening;
use crate::tls::{self, TlsArgs};

/// Serve the store to Redis clients
///
/// Makes the store if there is none. SIGINT and SIGTERM end it after the requests that have arrived.
#[derive(Args)]
pub(crate) struct Serve {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    addr: String,
    /// Threads that serve; by default one a core, but for one core
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    durable: Durable,
    /// Put keys in order from the start, rather than when a client first asks for a range
    #[arg(long)]
    ordered: bool,
    /// Where metrics, health and a live page are shown by HTTP; nowhere by default; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    #[command(flatten)]
    logging: Logging,
    /// The most clients at a time
    #[arg(long, value_name = "COUNT")]
    max_clients: Option<NonZeroUsize>,
    /// A file whose first line is the password of the user 'default'
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A file of users and their rights, as Redis' aclfile
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// Where SAVE and BGSAVE put their backup; by default 'backup' in DIR
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Listen beyond this host though nobody needs a password
    #[arg(long)]
    unprotected: bool,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let config = self.config(self.logging.install()?)?;
        let port = HttpPort::open(&config)
            .map_err(|error| at_addr(self.http.as_ref().unwrap_or(&self.addr), "--http", error))?;
        let store = self.open()?;
        let stop = StopHandle::new();
        let server =
            Server::bind(store.clone(), config, stop.clone()).map_err(|error| at_addr(&self.addr, "--addr", error))?;
        port.iter().for_each(|port| server.show_on(port));
        tls::reload_on_hangup(server.tls_reload()).map_err(Failure::at_signals)?;
        self.announce(&store, &server, port.as_ref()).map_err(Failure::output("standard output"))?;
        // Nobody but a service manager waits for it, and that one has a time limit.
        let _ = sd_notify::notify(&[NotifyState::Ready]);
        let stopper = stop.clone();
        thread::spawn(move || {
            interrupt.wait().map(|()| {
                tracing::info!("stopping: a signal came");
                stopper.stop();
            })
        });
        server.run().map_err(|error| Failure::at(&self.addr, error))?;
        let items = store.len().map_err(Failure::at_path(&self.dir))?;
        // It may be gathering figures of the store, which only its last user closes.
        drop(port);
        store.close().map_err(Failure::at_path(&self.dir))?;
        tracing::info!(items, "stopped");
        writeln!(io::stdout(), "stopped; {} holds {} items", self.dir.display(), HumanCount(items))
            .map_err(Failure::output("standard output"))
    }

    fn config(&self, log: LogControl) -> Result<Config, Failure> {
        let default = Config::default();
        Ok(Config {
            addr: self.addr.clone(),
            threads: self.threads.map_or(default.threads, NonZeroUsize::get),
            max_clients: self.max_clients.map_or(default.max_clients, NonZeroUsize::get),
            password: self.password_file.as_deref().map(read_password).transpose()?,
            acl_file: self.acl_file.clone(),
            backup_dir: self.backup_dir.clone(),
            protected: !self.unprotected,
            tls: self.tls.config(),
            ordered: self.ordered,
            http: self.http.clone(),
            log: Some(log),
            ..default
        })
    }

    fn open(&self) -> Result<Store, Failure> {
        let dir = self.dir.display();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), store = %dir, "starting");
        let began = Instant::now();
        let store = opening::open(&self.durable.options(), &self.dir)
            .inspect_err(|error| tracing::error!(%error, "not opened"))?;
        let (took_ms, stats) =
            (began.elapsed().as_millis() as u64, store.stats_now().map_err(Failure::at_path(&self.dir))?);
        tracing::info!(
            took_ms,
            counted = stats.counted,
            items = stats.items,
            region_bytes = stats.region_bytes,
            live_bytes = stats.live_bytes,
            medium = stats.medium,
            durability = stats.durability,
            why = stats.durability_why,
            base_bytes = stats.journal.map(|journal| journal.base_bytes),
            replayed_bytes = stats.journal.map(|journal| journal.replayed_bytes),
            "recovered"
        );
        Ok(store)
    }

    fn announce(&self, store: &Store, server: &Server, port: Option<&HttpPort>) -> io::Result<()> {
        // Whoever waits for the address does not wait for a sweep.
        let stats = store.stats_now().map_err(io::Error::other)?;
        let mut out = io::stdout().lock();
        let items = if stats.counted { HumanCount(stats.items).to_string() } else { "uncounted".to_owned() };
        writeln!(out, "serving {}, {items} items", self.dir.display())?;
        writeln!(out, "  address     {}, Redis protocol", server.local_addr())?;
        if let Some(addr) = server.local_tls_addr() {
            writeln!(out, "  tls         {addr}, TLS 1.2 and 1.3")?;
        }
        if let Some(port) = port {
            writeln!(out, "  watching    http://{}/", port.local_addr())?;
        }
        writeln!(out, "  order       {}", describe_order(stats.order))?;
        writeln!(out, "  medium      {}", stats.medium)?;
        if let Some(journal) = stats.journal {
            writeln!(out, "  journal     {}", describe_journal(stats.durability, &journal))?;
        }
        writeln!(out, "  durability  {}: {}", stats.durability, stats.durability_why)?;
        tracing::info!(addr = %server.local_addr(), http = port.map(|port| port.local_addr().to_string()), "ready");
        out.flush()
    }
}

/// An address that cannot be listened on; `option` names it.
fn at_addr(addr: &str, option: &str, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => Failure::at(addr, format!("another program listens there; give another {option}")),
        _ => Failure::at(addr, error),
    }
}

/// The first line of the file. It is not given as an argument, since others can see those.
fn read_password(path: &Path) -> Result<Secret, Failure> {
    let text = fs::read(path).map_err(Failure::at_path(path))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    if password.is_empty() {
        return Err(Failure::at(path.display(), "its first line must be a password"));
    }
    Ok(password.into())
}

fn describe_journal(durability: &str, journal: &JournalStats) -> String {
    let [max, base, replayed] = [journal.log_max_bytes, journal.base_bytes, journal.replayed_bytes].map(HumanBytes);
    let interval = match durability {
        "buffered" => format!(", synced every {} ms", journal.sync_interval_ms),
        _ => String::new(),
    };
    let seconds = journal.replay_seconds;
    format!("a log of at most {max}{interval}; {replayed} replayed in {seconds:.2} s, {base} read in the background")
}

fn describe_order(state: &str) -> &str {
    match state {
        "off" => "off until a client asks for a range",
        "building" => "building; ranges are answered once it is ready",
        other => other,
    }
}
