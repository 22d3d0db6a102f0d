//! `hikv nvme`.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use device_client::{Client, Error, Host, Options, Secrets, discover, discover_at};

use super::device::secret;
use crate::failure::Failure;
use crate::formats::Escaped;

/// Use an NVMe Key Value device, as a host of its own
#[derive(Args)]
pub(crate) struct Nvme {
    /// Where the device listens: an address and a port, or the path of its socket, with a '/', to share memory with it
    #[arg(value_name = "ADDR")]
    addr: String,
    /// The host's name; by default one that nobody has seen before
    #[arg(long, value_name = "NQN")]
    host_nqn: Option<String>,
    /// A file with the secret that the device wants the host to know
    #[arg(long, value_name = "FILE")]
    dhchap_key: Option<PathBuf>,
    /// A file with the secret that the device has to know: one that does not show that it does is refused
    #[arg(long, value_name = "FILE", requires = "dhchap_key")]
    dhchap_ctrl_key: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the subsystems that the device tells of
    Discover,
    /// Show what the controller and its namespace say of themselves
    Identify,
    /// Store a value under a key of 1 to 16 bytes
    Store { key: OsString, value: OsString },
    /// Write the value of a key to standard output, byte for byte
    Retrieve { key: OsString },
    /// Delete a key, which need not be there
    Delete { key: OsString },
    /// Say whether there is such a key
    Exist { key: OsString },
    /// List keys in order, all or from one on
    List { from: Option<OsString> },
}

impl Nvme {
    pub(super) fn run(self) -> Result<(), Failure> {
        let at_addr = |error: Error| Failure::at(&self.addr, error);
        if !self.addr.contains(['/', ':']) {
            return Err(Failure::at(
                &self.addr,
                "a device is at an address with a port, HOST:PORT, or at a path with a '/'",
            ));
        }
        let output = Failure::output("standard output");
        let mut out = io::stdout().lock();
        if let What::Discover = self.what {
            let log = self.discover().map_err(at_addr)?;
            return show(&mut out, log.entries.iter().map(|entry| format!("{} {}", entry.addr, entry.subsystem)))
                .map_err(output);
        }
        let options = Options { host: self.host()?, reconnect_max: Duration::ZERO, ..Options::default() };
        let mut client = self.connect(options).map_err(at_addr)?;
        match &self.what {
            What::Discover => Ok(()),
            What::Identify => show(&mut out, identify(&mut client).map_err(at_addr)?.into_iter()).map_err(output),
            What::Store { key, value } => client.store(key.as_bytes(), value.as_bytes()).map_err(at_addr),
            What::Delete { key } => client.delete(key.as_bytes()).map_err(at_addr),
            What::Retrieve { key } => match client.retrieve(key.as_bytes()).map_err(at_addr)? {
                Some(value) => write_value(&mut out, &value).map_err(output),
                None => Err(self.missing(key)),
            },
            What::Exist { key } => match client.exists(key.as_bytes()).map_err(at_addr)? {
                true => Ok(()),
                false => Err(self.missing(key)),
            },
            What::List { from } => {
                let mut from = from.as_ref().map(|from| from.as_bytes().to_vec()).unwrap_or_default();
                loop {
                    let keys = client.list(&from).map_err(at_addr)?;
                    let Some(next) = keys.last().and_then(|last| behind(last)) else {
                        return show(&mut out, keys.iter().map(|key| Escaped(key).to_string())).map_err(output);
                    };
                    show(&mut out, keys.iter().map(|key| Escaped(key).to_string()))
                        .map_err(Failure::output("standard output"))?;
                    from = next;
                }
            }
        }
    }

    fn host(&self) -> Result<Host, Failure> {
        let mut host = Host::new();
        host.name = self.host_nqn.clone().unwrap_or(host.name);
        if let Some(path) = &self.dhchap_key {
            let controller = self.dhchap_ctrl_key.as_deref().map(secret).transpose()?;
            host.secrets = Some(Secrets { host: secret(path)?, controller });
        }
        Ok(host)
    }

    /// The socket, if it is one.
    fn path(&self) -> Option<&Path> {
        self.addr.contains('/').then(|| Path::new(&self.addr))
    }

    fn discover(&self) -> Result<::nvme::DiscoveryLog, Error> {
        self.path().map_or_else(|| discover(&*self.addr), |path| discover_at(&path.into()))
    }

    fn connect(&self, options: Options) -> Result<Client, Error> {
        match self.path() {
            Some(path) => Client::connect_shm(path, options),
            None => Client::connect(&*self.addr, options),
        }
    }

    fn missing(&self, key: &OsString) -> Failure {
        Failure::Negative(format!("{}: there is no key '{}'", self.addr, Escaped(key.as_bytes())))
    }
}

/// The least key of the command set above `key`, if there is one.
fn behind(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() < ::nvme::Key::BYTES_MAX {
        return Some([key, &[0]].concat());
    }
    let len = key.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut next = key[..len].to_vec();
    next[len - 1] += 1;
    Some(next)
}

fn identify(client: &mut Client) -> Result<Vec<String>, Error> {
    let controller = client.controller()?;
    let (identified, namespace) = (controller.identify()?, controller.identify_namespace(1)?);
    Ok(vec![
        format!("model       {}", identified.model),
        format!("serial      {}", identified.serial),
        format!("subsystem   {}", identified.subsystem),
        format!("controller  {}", identified.controller),
        format!("value limit {}", namespace.value_bytes_max),
        format!("size        {}", namespace.size_bytes),
        format!("used        {}", namespace.used_bytes),
    ])
}

fn show(out: &mut impl Write, mut lines: impl Iterator<Item = String>) -> io::Result<()> {
    lines.try_for_each(|line| writeln!(out, "{line}"))?;
    out.flush()
}

fn write_value(out: &mut (impl Write + IsTerminal), value: &[u8]) -> io::Result<()> {
    out.write_all(value)?;
    if out.is_terminal() {
        out.write_all(b"\n")?;
    }
    out.flush()
}
