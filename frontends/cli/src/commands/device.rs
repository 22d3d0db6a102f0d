//! `hikv device`.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use clap::{Args, value_parser};
use device::{Config, Device as Served, Listening, Secrets, StartError, StopHandle};
use device_client::Secret;
use hikv::{EngineKind, OpenError, Options, Store};
use indicatif::HumanCount;

use crate::durable::Durable;
use crate::failure::{Failure, unless_closed, warn};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::plural::s;
use crate::{notify, opening};

/// The least size of a store.
const SIZE_MIN: u64 = 1 << 20;
/// The maximum of the server for Redis clients.
const THREAD_COUNT_MAX: i64 = 128;
/// Help of `--engine`, whose default here is not that of the other commands.
const ENGINE_HELP: &str = "Engine of a new store [default: pmekv]; an existing store opens only with its own engine";

/// Serve the store as an NVMe Key Value device, over TCP and shared memory
///
/// Creates the store if it does not exist. SIGINT, SIGTERM and SIGHUP end the device.
#[derive(Args)]
#[command(mut_arg("engine", |engine| engine.help(ENGINE_HELP)))]
pub(crate) struct Device {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4420")]
    tcp: String,
    /// Socket to create for hosts on this machine, which share memory with the device
    #[arg(long, value_name = "SOCKET")]
    shm: Option<PathBuf>,
    /// Permissions of that socket: users with write permission may connect
    #[arg(long, value_name = "OCTAL", default_value = "600", value_parser = mode, requires = "shm")]
    shm_mode: u32,
    /// Name of a host that may connect [default: all hosts]; may be repeated; a host can claim any name
    #[arg(long, value_name = "NQN")]
    host_nqn: Vec<String>,
    /// Name of the subsystem [default: derived from the store's UUID]
    #[arg(long, value_name = "NQN")]
    subnqn: Option<String>,
    /// Maximum size of the store
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40, value_parser = value_parser!(u64).range(SIZE_MIN..))]
    size: u64,
    /// Serving threads [default: cores - 1, at least 1]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true, value_parser = value_parser!(u8).range(0..=THREAD_COUNT_MAX))]
    threads: u8,
    /// File with the secret that hosts over TCP must prove (DH-HMAC-CHAP), as printed by `nvme gen-dhchap-key`
    #[arg(long, value_name = "FILE")]
    dhchap_key: Option<PathBuf>,
    /// File with the secret that the device proves to hosts that request it
    #[arg(long, value_name = "FILE", requires = "dhchap_key")]
    dhchap_ctrl_key: Option<PathBuf>,
    /// Listen on addresses that other machines can reach, even without --dhchap-key
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    memory: Memory,
}

impl Device {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install()?;
        let secrets = self.secrets()?;
        let config = Config {
            addr: self.tcp.clone(),
            shm: self.shm.clone().map(|path| (path, self.shm_mode)),
            thread_count: self.threads.into(),
            subsystem: self.subnqn.clone(),
            hosts: self.host_nqn.clone(),
            secrets,
            is_insecure: self.insecure,
            capacity_bytes: self.size,
            store_dir: Some(self.dir.clone()),
        };
        let not_started = |error| self.not_started(&error);
        // Binds first: an address that is not available must not create a store.
        let listening = Listening::bind(&config).map_err(not_started)?;
        let store = self.open()?;
        let stop = StopHandle::new();
        let served = Served::at(listening, store.clone(), &config, stop.clone()).map_err(not_started)?;
        stop_at_signal(interrupt, stop).map_err(Failure::at_signals)?;
        if let Err(error) = self.announce(&store, &served) {
            // The device serves even if its first lines cannot be printed.
            warn(&format!("cannot print the device's address to standard output: {error}"));
        }
        notify::ready();
        served.run().map_err(|error| Failure::at("the device", error))?;
        let items = store.len();
        store.close().map_err(Failure::at_path(&self.dir))?;
        let items = items.map_err(Failure::at_path(&self.dir))?;
        let dir = self.dir.display();
        let said = writeln!(io::stdout(), "stopped; {dir} holds {} item{}", HumanCount(items), s(items));
        unless_closed(said).map_err(Failure::output("standard output"))
    }

    fn secrets(&self) -> Result<Option<Secrets>, Failure> {
        let Some(path) = &self.dhchap_key else { return Ok(None) };
        let controller = self.dhchap_ctrl_key.as_deref().map(secret).transpose()?;
        Ok(Some(Secrets { host: secret(path)?, controller }))
    }

    /// Opens the store, or creates it.
    fn open(&self) -> Result<Store, Failure> {
        let options = self.memory.options(self.durable.options()).region_bytes_max(self.size);
        match opening::open(&self.kept.options(options.clone()).create(false), &self.dir) {
            Err(OpenError::Missing { .. }) => self.make(options),
            opened => Ok(opened?),
        }
    }

    fn make(&self, options: Options) -> Result<Store, Failure> {
        Ok(opening::open(&self.kept.options(options.engine(EngineKind::Pmekv)), &self.dir)?)
    }

    fn not_started(&self, error: &StartError) -> Failure {
        match error {
            StartError::Insecure(_) => {
                Failure::at("--tcp", format!("{error}; give --dhchap-key, or --insecure to listen there without it"))
            }
            StartError::Name(_) => Failure::Error(format!("{error}; check --subnqn and --host-nqn")),
            StartError::Shm(..) => Failure::at("--shm", error),
            StartError::Listen(_) => Failure::at(format!("--tcp '{}'", self.tcp), error),
            _ => Failure::at("the device", error),
        }
    }

    fn announce(&self, store: &Store, served: &Served) -> io::Result<()> {
        let stats = hikv::FrontEnd::of(store).stats_now().map_err(io::Error::other)?;
        let addr = served.local_addr();
        let mut out = io::stdout().lock();
        writeln!(out, "offering {}, engine {}", self.dir.display(), store.engine_kind())?;
        writeln!(out, "  address     {addr}, NVMe over TCP, Key Value command set")?;
        writeln!(
            out,
            "  connect     nvme connect -t tcp -a {} -s {} -n {}",
            addr.ip(),
            addr.port(),
            served.subsystem()
        )?;
        if let Some(path) = &self.shm {
            let mode = self.shm_mode;
            writeln!(out, "  memory      {}, shared with users that may write to it ({mode:03o})", path.display())?;
        }
        writeln!(out, "  hosts       {}", self.describe_hosts(addr.ip().is_loopback()))?;
        writeln!(out, "  medium      {}", stats.medium)?;
        writeln!(out, "  durability  {}: {}", stats.durability, stats.durability_why)?;
        out.flush()
    }

    fn describe_hosts(&self, is_local: bool) -> String {
        let whose = if is_local { "every user of this machine" } else { "every host that reaches this address" };
        let whose = if self.dhchap_key.is_some() { "every host with the secret" } else { whose };
        match self.host_nqn.len() as u64 {
            0 => format!("{whose} can read and write"),
            count => format!("{whose} can read and write, by {count} host name{}", s(count)),
        }
    }
}

/// Reads the secret in a file.
///
/// # Errors
/// Every user may read the file, or its content is not a secret.
pub(super) fn secret(path: &Path) -> Result<Secret, Failure> {
    const READABLE_BY_ALL: u32 = 0o004;
    if fs::metadata(path).map_err(Failure::at_path(path))?.permissions().mode() & READABLE_BY_ALL != 0 {
        return Err(Failure::at(path.display(), "every user may read this secret; restrict the file with chmod o-r"));
    }
    let text = server::read_unmarked(path).map_err(Failure::at_path(path))?;
    Secret::parse(&String::from_utf8_lossy(&text)).map_err(|error| Failure::at(path.display(), error))
}

/// Parses permissions in octal digits.
fn mode(digits: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "expected up to three octal digits, as for chmod".into())
}

fn stop_at_signal(interrupt: Interrupt, stop: StopHandle) -> io::Result<()> {
    let stop = move || interrupt.wait().map(|()| stop.stop());
    thread::Builder::new().name("hikv-signals".into()).spawn(stop).map(drop)
}
