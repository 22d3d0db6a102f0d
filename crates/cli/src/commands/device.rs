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
use crate::plural::s;
use crate::{notify, opening};

/// Less than that is no room for anything.
const SIZE_MIN: u64 = 1 << 20;
/// As many as serve Redis clients.
const THREAD_COUNT_MAX: i64 = 128;

/// Offer the store as an NVMe Key Value device, by NVMe over TCP
///
/// Makes the store if there is none, of the engine pmekv unless another is asked for. SIGINT, SIGTERM and SIGHUP end it.
#[derive(Args)]
pub(crate) struct Device {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where hosts connect; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4420")]
    tcp: String,
    /// Where hosts of this machine connect that share memory with the device: a socket, made at this path
    #[arg(long, value_name = "SOCKET")]
    shm: Option<PathBuf>,
    /// The permissions of that socket: users that may write to it may connect
    #[arg(long, value_name = "OCTAL", default_value = "600", value_parser = mode, requires = "shm")]
    shm_mode: u32,
    /// A host that may connect, by its name, which any host can give; several times for more; by default all
    #[arg(long, value_name = "NQN")]
    host_nqn: Vec<String>,
    /// The subsystem's name; by default one made of the store's identity
    #[arg(long, value_name = "NQN")]
    subnqn: Option<String>,
    /// The most that the store may take, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40, value_parser = value_parser!(u64).range(SIZE_MIN..))]
    size: u64,
    /// Threads that serve; by default one a core, but for one core
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true, value_parser = value_parser!(u8).range(0..=THREAD_COUNT_MAX))]
    threads: u8,
    /// A file with the secret that hosts have to know (DH-HMAC-CHAP), as `nvme gen-dhchap-key` makes it; hosts that share memory need none
    #[arg(long, value_name = "FILE")]
    dhchap_key: Option<PathBuf>,
    /// A file with the secret that the device shows hosts to know that ask for it
    #[arg(long, value_name = "FILE", requires = "dhchap_key")]
    dhchap_ctrl_key: Option<PathBuf>,
    /// Listen beyond this machine, though hosts do not prove who they are
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
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
        // What cannot be offered makes no store.
        let listening = Listening::bind(&config).map_err(not_started)?;
        let store = self.open()?;
        let stop = StopHandle::new();
        let served = Served::at(listening, store.clone(), &config, stop.clone()).map_err(not_started)?;
        stop_at_signal(interrupt, stop).map_err(Failure::at_signals)?;
        if let Err(error) = self.announce(&store, &served) {
            // A device serves, though the reader of its first lines has gone or has no space for them.
            warn(&format!("standard output did not take the device's address: {error}"));
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

    /// The store that is there, or a new one.
    fn open(&self) -> Result<Store, Failure> {
        let options = self.durable.options().region_bytes_max(self.size);
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
            StartError::Insecure(_) => Failure::at(
                "--tcp",
                format!("{error}; --dhchap-key has them prove it, and --insecure listens there all the same"),
            ),
            StartError::Name(_) => Failure::Error(format!("{error} (--subnqn, --host-nqn)")),
            StartError::Shm(..) => Failure::at("--shm", error),
            StartError::Listen(_) => Failure::at(format!("--tcp '{}'", self.tcp), error),
            _ => Failure::at("the device", error),
        }
    }

    fn announce(&self, store: &Store, served: &Served) -> io::Result<()> {
        let stats = store.stats_now().map_err(io::Error::other)?;
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
            writeln!(out, "  memory      {}, shared with whoever may write to it ({mode:03o})", path.display())?;
        }
        writeln!(out, "  hosts       {}", self.describe_hosts(addr.ip().is_loopback()))?;
        writeln!(out, "  medium      {}", stats.medium)?;
        writeln!(out, "  durability  {}: {}", stats.durability, stats.durability_why)?;
        out.flush()
    }

    fn describe_hosts(&self, is_local: bool) -> String {
        let whose = if is_local { "every user of this machine" } else { "whoever reaches this address" };
        let whose = if self.dhchap_key.is_some() { "whoever knows the secret" } else { whose };
        match self.host_nqn.len() as u64 {
            0 => format!("{whose} can read and write"),
            count => format!("{whose} who gives the name of {count} host{} can read and write", s(count)),
        }
    }
}

/// The secret in a file, which is none if everybody may read it.
pub(super) fn secret(path: &Path) -> Result<Secret, Failure> {
    const READABLE_BY_ALL: u32 = 0o004;
    if fs::metadata(path).map_err(Failure::at_path(path))?.permissions().mode() & READABLE_BY_ALL != 0 {
        return Err(Failure::at(path.display(), "everybody may read it, and it is to hold a secret: chmod o-r"));
    }
    let text = server::read_unmarked(path).map_err(Failure::at_path(path))?;
    Secret::parse(&String::from_utf8_lossy(&text)).map_err(|error| Failure::at(path.display(), error))
}

/// Permissions in octal digits.
fn mode(digits: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "three octal digits, as of chmod".into())
}

fn stop_at_signal(interrupt: Interrupt, stop: StopHandle) -> io::Result<()> {
    let stop = move || interrupt.wait().map(|()| stop.stop());
    thread::Builder::new().name("hikv-signals".into()).spawn(stop).map(drop)
}
