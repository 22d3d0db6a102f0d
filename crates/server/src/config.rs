use std::path::PathBuf;
use std::time::Duration;

use hikv::pool::Sharing;

use crate::administration::secrets::Secret;
use crate::connections::transport::TlsFiles;
use crate::{LogControl, Parameters};

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// `HOST:PORT` to listen on, up to 16 with the same port; port 0 takes a free one. `-` before one says that it may be an
    /// address that this host lacks. With none, clients are served by TLS alone.
    pub addrs: Vec<String>,
    /// A socket in the file system to listen on as well, with the permissions that its file gets; those that the process' umask leaves
    /// it, if they are none. A file there that is a socket on which no program listens is replaced.
    pub unix: Option<(PathBuf, Option<u32>)>,
    /// Event loops, each a thread; at least one runs. With a fixed split, all threads of that.
    pub threads: usize,
    /// Which threads apply what writes leave for the order of keys: the store's threads beside the loops, or the loops as a pool
    /// (`docs/decisions/0049-split-threads-by-the-papers-equation-on-request.md`). The backend of a fixed split is what the store is opened with
    /// ([`hikv::Options::background_threads`]).
    pub split: Sharing,
    /// The most clients at a time; fewer if the process may not open so many files.
    pub max_clients: usize,
    /// The longest argument of a request in bytes, at most 1 GiB.
    pub bulk_bytes_max: usize,
    /// The password of the user `default`; every client is that user until it says otherwise.
    pub password: Option<Secret>,
    /// A file of users, each a line `user NAME RULES…` as in Redis.
    pub acl_file: Option<PathBuf>,
    /// Where `SAVE` and `BGSAVE` put their backup; by default `backup` in the store's directory.
    pub backup_dir: Option<PathBuf>,
    /// Whether to refuse an address that others than this host can reach while the user `default` needs no password.
    pub protected: bool,
    /// Where clients are served by TLS, beside `addrs`.
    pub tls: Option<Tls>,
    /// Whether keys are put in order from the start, rather than when a client first asks for a range.
    pub ordered: bool,
    /// `HOST:PORT` on which [`crate::HttpPort`] tells how the server does; it has no such port if none.
    pub http: Option<String>,
    /// Whether that port is served by TLS, with the certificates of `tls`.
    pub http_tls: bool,
    /// Names of this host by which that port may be asked for, beside its addresses and `localhost`; `*` is any.
    pub http_hosts: Vec<String>,
    /// The parameters given at the start. Those without a field here are taken from this one; for the others their field counts.
    pub parameters: Parameters,
    /// What `CONFIG SET loglevel` acts on.
    pub log: Option<LogControl>,
    /// How long a client may take to read the last replies when the server stops.
    pub drain_max: Duration,
}

/// How to serve by TLS, in its versions 1.2 and 1.3.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Where to listen, as [`Config::addrs`].
    pub addrs: Vec<String>,
    /// The certificates.
    pub files: TlsFiles,
    /// How long a client may take until both have agreed on keys.
    pub handshake_max: Duration,
}

impl Tls {
    /// TLS at one address, with a handshake of at most ten seconds.
    pub fn new(addr: impl Into<String>, files: TlsFiles) -> Tls {
        Tls { addrs: vec![addr.into()], files, handshake_max: Duration::from_secs(10) }
    }
}

impl Default for Config {
    /// Redis' defaults, on the loopback interface alone, with a thread for each core but one: the store's worker, which keeps
    /// the order, and the kernel's network need that.
    fn default() -> Config {
        Config {
            addrs: vec!["127.0.0.1:6379".into()],
            unix: None,
            threads: std::thread::available_parallelism().map_or(1, |count| (count.get() - 1).max(1)),
            split: Sharing::Beside,
            max_clients: 10_000,
            bulk_bytes_max: 512 << 20,
            password: None,
            acl_file: None,
            backup_dir: None,
            protected: true,
            tls: None,
            ordered: false,
            http: None,
            http_tls: false,
            http_hosts: Vec::new(),
            parameters: Parameters::default(),
            log: None,
            drain_max: Duration::from_secs(5),
        }
    }
}
