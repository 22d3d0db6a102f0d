//! `hikv serve`.

mod options;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Instant;

use hikv::{JournalStats, Options, Store};
use indicatif::{HumanBytes, HumanCount};
use server::{HttpPort, LogControl, Parameters, Prepared, Server, StopHandle};

use crate::durable::Durable;
use crate::failure::{Failure, unless_closed, with_sources};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::opening;
use crate::plural::s;
use crate::read_cache::ReadCache;
use crate::tls;
use crate::verified::Verified;
use crate::{logging, notify};

pub(crate) use options::Serve;

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install_but_for_hangups()?;
        let parameters = self.parameters()?;
        let dir = self.store_dir(&parameters)?;
        let log = logging::install(&parameters)?;
        let outcome = self.serve(interrupt, &parameters, &dir, log.clone());
        log.flush();
        outcome
    }

    fn serve(&self, interrupt: Interrupt, parameters: &Parameters, dir: &Path, log: LogControl) -> Result<(), Failure> {
        let config = self.server_config(parameters, log)?;
        let port = HttpPort::open(&config).map_err(|error| not_bound("--http", &error))?;
        // Binds first: an address that is not available must not create a store.
        let prepared = Prepared::of(config).map_err(|error| not_bound("--addr", &error))?;
        let store = open(dir, &store_options(parameters)?)?;
        let stop = StopHandle::new();
        let server = Server::on(store.clone(), prepared, stop.clone()).map_err(|error| not_bound("--addr", &error))?;
        port.iter().for_each(|port| server.show_on(port));
        tls::reload_on_hangup(server.tls_reload()).map_err(Failure::at_signals)?;
        stop_at_signal(interrupt, stop).map_err(Failure::at_signals)?;
        if let Err(error) = announce(dir, &store, &server, port.as_ref()) {
            // The server serves even if its first lines cannot be printed.
            tracing::warn!(%error, "cannot print the server's addresses to standard output");
        }
        notify::ready();
        server.run().map_err(|error| Failure::at("the server", error))?;
        let items = store.len();
        // The port may be using the store, which only its last user closes.
        drop(port);
        store.close().map_err(Failure::at_path(dir))?;
        let items = items.map_err(Failure::at_path(dir))?;
        tracing::info!(items, "stopped");
        let said = writeln!(io::stdout(), "stopped; {} holds {} item{}", dir.display(), HumanCount(items), s(items));
        unless_closed(said).map_err(Failure::output("standard output"))
    }
}

fn stop_at_signal(interrupt: Interrupt, stop: StopHandle) -> io::Result<()> {
    let stop = move || {
        interrupt.wait().map(|()| {
            tracing::info!("stopping: received a signal");
            stop.stop();
        })
    };
    thread::Builder::new().name("hikv-signals".into()).spawn(stop).map(drop)
}

fn store_options(parameters: &Parameters) -> Result<Options, Failure> {
    let options =
        Durable::of(parameters).options().tuning(|tuning| tuning.verify_reads(Verified::of(parameters).level()));
    let options = Kept::of(parameters)?.options(ReadCache::of(parameters).options(options));
    let options = Memory::of(parameters).options(options);
    Ok(match parameters.split().fixed() {
        Some(split) => options.tuning(|tuning| tuning.background_threads(split.backend)),
        None => options,
    })
}

fn open(dir: &Path, options: &Options) -> Result<Store, Failure> {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), store = %dir.display(), "starting");
    let began = Instant::now();
    let store = opening::open(options, dir)
        .inspect_err(|error| tracing::error!(error = with_sources(error), "cannot open the store"))?;
    let (took_ms, stats) =
        (began.elapsed().as_millis() as u64, hikv::FrontEnd::of(&store).stats_now().map_err(Failure::at_path(dir))?);
    tracing::info!(
        took_ms,
        counted = stats.counted,
        items = stats.counted.then_some(stats.items),
        region_bytes = stats.region_bytes,
        live_bytes = stats.counted.then_some(stats.live_bytes),
        medium = stats.medium,
        durability = stats.durability,
        why = stats.durability_why,
        base_bytes = stats.journal.map(|journal| journal.base_bytes),
        replayed_bytes = stats.journal.map(|journal| journal.replayed_bytes),
        "recovered"
    );
    Ok(store)
}

fn announce(dir: &Path, store: &Store, server: &Server, port: Option<&HttpPort>) -> io::Result<()> {
    // `stats_now`: the addresses are printed without waiting for a count of the items.
    let stats = hikv::FrontEnd::of(store).stats_now().map_err(io::Error::other)?;
    let mut out = io::stdout().lock();
    // After a crash the items are counted in the background.
    let items = match stats.counted {
        true => format!(", {} item{}", HumanCount(stats.items), s(stats.items)),
        false => String::new(),
    };
    writeln!(out, "serving {}{items}", dir.display())?;
    for addr in server.local_addrs() {
        writeln!(out, "  address     {addr}, Redis protocol")?;
    }
    for addr in server.local_tls_addrs() {
        writeln!(out, "  tls         {addr}, TLS 1.2 and 1.3")?;
    }
    if let Some(path) = server.local_unix() {
        writeln!(out, "  unix        {}, Redis protocol", path.display())?;
    }
    if let Some(port) = port {
        writeln!(out, "  watching    {}://{}/", port.scheme(), port.local_addr())?;
    }
    writeln!(out, "  order       {}", describe_order(stats.order))?;
    writeln!(out, "  medium      {}", stats.medium)?;
    if let Some(journal) = stats.journal {
        writeln!(out, "  journal     {}", describe_journal(stats.durability, &journal))?;
    }
    writeln!(out, "  durability  {}: {}", stats.durability, stats.durability_why)?;
    tracing::info!(
        addr = shown(server.local_addrs()),
        tls = shown(server.local_tls_addrs()),
        unix = server.local_unix().map(|path| path.display().to_string()),
        http = shown(port.iter().map(|port| port.local_addr())),
        "ready"
    );
    out.flush()
}

/// Joins the addresses; `None` if there are none.
fn shown(addrs: impl Iterator<Item = SocketAddr>) -> Option<String> {
    let shown: Vec<String> = addrs.map(|addr| addr.to_string()).collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Returns the failure for an address that cannot be bound. The error names the address, unless it is an error of the
/// operating system; `option` sets the address.
fn not_bound(option: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => Failure::Error(format!("{error}; give another {option}")),
        _ if error.raw_os_error().is_some() => Failure::at("the server", error),
        _ => Failure::Error(error.to_string()),
    }
}

fn describe_journal(durability: &str, journal: &JournalStats) -> String {
    let [max, base, replayed] = [journal.log_max_bytes, journal.base_bytes, journal.replayed_bytes].map(HumanBytes);
    let interval = match durability {
        "buffered" => format!(", a sync begins every {} ms", journal.sync_interval_ms),
        _ => String::new(),
    };
    let seconds = journal.replay_seconds;
    format!("a log of at most {max}{interval}; {replayed} replayed in {seconds:.2} s, {base} read in the background")
}

fn describe_order(state: &str) -> &str {
    match state {
        "off" => "off until a client requests a range",
        "building" => "building; ranges are answered once it is ready",
        other => other,
    }
}
