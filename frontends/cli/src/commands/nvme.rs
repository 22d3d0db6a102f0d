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

/// Use an NVMe Key Value device, as a host
#[derive(Args)]
pub(crate) struct Nvme {
    /// The device: HOST:PORT, or the path of its socket, with a '/', to share memory with it
    #[arg(value_name = "ADDR")]
    addr: String,
    /// Name of the host [default: a new one]
    #[arg(long, value_name = "NQN")]
    host_nqn: Option<String>,
    /// File with the secret that the host proves to the device
    #[arg(long, value_name = "FILE")]
    dhchap_key: Option<PathBuf>,
    /// File with the secret that the device must prove to the host
    #[arg(long, value_name = "FILE", requires = "dhchap_key")]
    dhchap_ctrl_key: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the subsystems that the device reports
    Discover,
    /// Show the properties of the controller and its namespace
    Identify,
    /// Store a value under a key of 1 to 16 bytes
    Store { key: OsString, value: OsString },
    /// Print the value of a key, byte for byte
    Retrieve { key: OsString },
    /// Delete a key, which need not exist
    Delete { key: OsString },
    /// End with exit code 0 if the key exists, otherwise with 1
    Exist { key: OsString },
    /// List keys in order, all or from FROM on
    List { from: Option<OsString> },
}

impl Nvme {
    pub(super) fn run(self) -> Result<(), Failure> {
        let at_addr = |error: Error| Failure::at(&self.addr, error);
        if !self.addr.contains(['/', ':']) {
            return Err(Failure::at(
                &self.addr,
                "not the address of a device; give HOST:PORT, or the path of a socket with a '/'",
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

    /// Returns the path of the socket, if the address is one.
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
        Failure::Negative(format!("{}: key not found: '{}'", self.addr, Escaped(key.as_bytes())))
    }
}

/// Returns the least key of the command set that is greater than `key`, if there is one.
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
