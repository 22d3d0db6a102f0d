//! From the options of `serve` to what the server and the store are to be.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use hikv::pool::Sharing;
use server::{Config, LogControl, Parameters, Secret};

use crate::durable::Durable;
use crate::failure::Failure;
use crate::given;
use crate::kept::Kept;
use crate::logging::Logging;
use crate::read_cache::ReadCache;
use crate::tls::TlsArgs;
use crate::verified::Verified;

/// Serve the store to Redis clients
///
/// Makes the store if there is none. SIGINT and SIGTERM end it after the requests that have arrived.
#[derive(Args)]
pub(crate) struct Serve {
    /// The store: a directory, or a DAX device; may be left out where --config names it
    #[arg(value_name = "DIR", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// A file of parameters in the form of redis.conf; what the command line says counts more
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one; several times for more, with one port; by default 127.0.0.1:6379
    ///
    /// It is no error if this host lacks an address with '-' before it: --addr=-[::1]:6379
    #[arg(long, value_name = "HOST:PORT")]
    addr: Vec<String>,
    /// The port to listen on, as Redis has it: `--port 6399` is `--addr 127.0.0.1:6399`; 0: none but that of TLS
    #[arg(long, value_name = "PORT", conflicts_with = "addr")]
    port: Option<u16>,
    /// An address to listen on, as Redis has it, at --port; several times for more; * is all of IPv4
    #[arg(long, value_name = "HOST", conflicts_with = "addr", allow_hyphen_values = true, num_args = 1)]
    bind: Vec<String>,
    /// A socket in the file system to listen on as well; clients of this host reach it by its path
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// The permissions of that socket's file, in octal, such as 770
    #[arg(long, value_name = "MODE", requires = "unix")]
    unix_perm: Option<String>,
    /// Threads that serve; by default one a core, but for one core; of a pool one a core, and of a fixed split as many as that names
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    /// Which threads apply what writes leave for the order of keys: `beside`, threads of the store, which sleep while nothing waits; `adaptive`, the
    /// threads that serve, as many as HiKV's equations say, between their clients' requests; `adaptive-without-updates`, the same, with updates left
    /// out of the equations; `12-4`, that many serve, and that many of the store apply
    #[arg(long)]
    split: Option<Sharing>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
    #[command(flatten)]
    verified: Verified,
    #[command(flatten)]
    read_cache: ReadCache,
    /// Put keys in order from the start, rather than when a client first asks for a range
    #[arg(long)]
    ordered: bool,
    /// Where metrics, health and a live page are shown by HTTP; nowhere by default; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Show that by TLS, with the certificate of --tls-cert
    #[arg(long)]
    http_tls: bool,
    /// A name by which --http may be asked for, beside this host's addresses and localhost; several times for more; * is any
    #[arg(long, value_name = "NAME")]
    http_host: Vec<String>,
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
    /// Clients that may use DEBUG: none unless this says otherwise, those of this host, or every one that the ACL lets
    #[arg(long, value_name = "WHO", value_parser = ["no", "local", "yes"])]
    enable_debug_command: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Listen beyond this host though nobody needs a password
    #[arg(long)]
    unprotected: bool,
}

impl Serve {
    /// What the file says, and the command line over it.
    pub(super) fn parameters(&self) -> Result<Parameters, Failure> {
        let mut parameters =
            self.config.as_deref().map(Parameters::read).transpose().map_err(whole)?.unwrap_or_default();
        let given = &mut parameters;
        given::path(given, "dir", self.dir.as_deref())?;
        given::path(given, "aclfile", self.acl_file.as_deref())?;
        given::path(given, "backup-dir", self.backup_dir.as_deref())?;
        given::text(given, "enable-debug-command", self.enable_debug_command.as_deref())?;
        given::text(given, "http", self.http.as_deref())?;
        given::text(given, "split", self.split.map(|split| split.to_string()).as_deref())?;
        given::text(given, "ordered", self.ordered.then_some("yes"))?;
        given::text(given, "http-tls", self.http_tls.then_some("yes"))?;
        given::text(given, "protected-mode", self.unprotected.then_some("no"))?;
        given::text(given, "port", self.port.map(|port| port.to_string()).as_deref())?;
        given::text(given, "bind", (!self.bind.is_empty()).then(|| self.bind.join(" ")).as_deref())?;
        given::path(given, "unixsocket", self.unix.as_deref())?;
        given::text(given, "unixsocketperm", self.unix_perm.as_deref())?;
        let hosts = (!self.http_host.is_empty()).then(|| self.http_host.join(" "));
        given::text(given, "http-hosts", hosts.as_deref())?;
        for (name, count) in [("io-threads", self.threads), ("maxclients", self.max_clients)] {
            given::text(given, name, count.map(|count| count.to_string()).as_deref())?;
        }
        self.kept.give(given)?;
        self.durable.give(given)?;
        self.verified.give(given)?;
        self.read_cache.give(given)?;
        self.logging.give(given)?;
        self.tls.give(given)?;
        Ok(parameters)
    }

    /// Where the store is.
    pub(super) fn store_dir(&self, parameters: &Parameters) -> Result<PathBuf, Failure> {
        let said =
            self.dir.clone().or_else(|| parameters.value("dir").filter(|dir| !dir.is_empty()).map(PathBuf::from));
        said.ok_or_else(|| {
            Failure::at("the store", "neither the command line nor the file of parameters (dir) names it")
        })
    }

    pub(super) fn server_config(&self, parameters: &Parameters, log: LogControl) -> Result<Config, Failure> {
        let mut config = Config { log: Some(log), ..parameters.config() };
        if !self.addr.is_empty() {
            config.addrs = self.addr.clone();
        }
        if let Some(path) = &self.password_file {
            config.password = Some(read_password(path)?);
        }
        self.tls.apply(&mut config)?;
        Ok(config)
    }
}

/// An error that says by itself what it is about.
fn whole(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}

/// The first line of the file. It is not given as an argument, since others can see those.
fn read_password(path: &Path) -> Result<Secret, Failure> {
    let text = server::read_unmarked(path).map_err(Failure::at_path(path))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    if password.is_empty() {
        return Err(Failure::at(path.display(), "its first line must be a password"));
    }
    Ok(password.into())
}
