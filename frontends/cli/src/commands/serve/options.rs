//! Converts the options of `serve` to the configuration of the server and the store.

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
use crate::memory::Memory;
use crate::read_cache::ReadCache;
use crate::tls::TlsArgs;
use crate::verified::Verified;

/// Serve the store to Redis clients
///
/// Creates the store if it does not exist. SIGINT and SIGTERM end the server after the requests that have arrived.
#[derive(Args)]
pub(crate) struct Serve {
    /// The store: a directory or a DAX device; may be omitted if the --config file has dir
    #[arg(value_name = "DIR", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// File of parameters, in the form of redis.conf; the command line overrides it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:6379]; port 0 selects a free port; may be repeated, with the same port
    ///
    /// An address with '-' before it may be missing on this host: --addr=-[::1]:6379
    #[arg(long, value_name = "HOST:PORT")]
    addr: Vec<String>,
    /// Port to listen on, as in Redis: `--port 6399` is `--addr 127.0.0.1:6399`; 0 listens only for TLS
    #[arg(long, value_name = "PORT", conflicts_with = "addr")]
    port: Option<u16>,
    /// Host address to listen on, at --port, as in Redis; may be repeated; * is all IPv4 addresses
    #[arg(long, value_name = "HOST", conflicts_with = "addr", allow_hyphen_values = true, num_args = 1)]
    bind: Vec<String>,
    /// Also listen on a socket in the file system, for clients on this host
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Permissions of that socket, in octal, such as 770
    #[arg(long, value_name = "MODE", requires = "unix")]
    unix_perm: Option<String>,
    /// Serving threads [default: cores - 1, at least 1; with an adaptive --split: cores; with --split N-M: N]
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    /// Threads that apply writes to the key order: `beside`, `adaptive`, `adaptive-without-updates` or `12-4` [default:
    /// beside]
    ///
    /// With `beside`, separate threads of the store apply; they sleep while there is nothing to apply.
    ///
    /// With `adaptive`, serving threads apply between requests, as many as the HiKV paper's equations give.
    /// `adaptive-without-updates` uses equations that leave out updates.
    ///
    /// With `12-4`, four threads of the store apply and twelve threads serve.
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
    #[command(flatten)]
    memory: Memory,
    /// Build the key order at the start, not at the first request for a range
    #[arg(long)]
    ordered: bool,
    /// Address for metrics, health and a live page over HTTP [default: none]; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Use TLS for --http, with the certificate in --tls-cert
    #[arg(long)]
    http_tls: bool,
    /// Host name allowed in requests to --http, in addition to this host's addresses and localhost; may be repeated; *
    /// is any
    #[arg(long, value_name = "NAME")]
    http_host: Vec<String>,
    #[command(flatten)]
    logging: Logging,
    /// Maximum number of connected clients [default: 10000]
    #[arg(long, value_name = "COUNT")]
    max_clients: Option<NonZeroUsize>,
    /// File whose first line is the password of the user 'default'
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File of users and their rights, as the aclfile of Redis
    #[arg(long, value_name = "FILE")]
    acl_file: Option<PathBuf>,
    /// Directory for the backup of SAVE and BGSAVE [default: 'backup' in the store's directory]
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
    /// Clients that may use DEBUG: none, those on this host, or all that the ACL allows [default: no]
    #[arg(long, value_name = "WHO", value_parser = ["no", "local", "yes"])]
    enable_debug_command: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Listen on addresses that other hosts can reach, even without a password
    #[arg(long)]
    unprotected: bool,
}

impl Serve {
    /// Reads the parameters in the file, and overrides them by the command line.
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
        self.memory.give(given)?;
        self.logging.give(given)?;
        self.tls.give(given)?;
        Ok(parameters)
    }

    /// Returns the path of the store.
    pub(super) fn store_dir(&self, parameters: &Parameters) -> Result<PathBuf, Failure> {
        let said =
            self.dir.clone().or_else(|| parameters.value("dir").filter(|dir| !dir.is_empty()).map(PathBuf::from));
        said.ok_or_else(|| {
            Failure::at("the store", "no directory; give it on the command line, or as dir in the --config file")
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

/// Converts an error that already names its subject.
fn whole(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}

/// Reads the first line of the file. A password is not an argument because other users can see arguments.
fn read_password(path: &Path) -> Result<Secret, Failure> {
    let text = server::read_unmarked(path).map_err(Failure::at_path(path))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    if password.is_empty() {
        return Err(Failure::at(path.display(), "the first line is empty; it must be the password"));
    }
    Ok(password.into())
}
