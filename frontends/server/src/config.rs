use std::path::PathBuf;
use std::time::Duration;

use hikv::pool::Sharing;

use crate::administration::secrets::Secret;
use crate::connections::transport::TlsFiles;
use crate::{LogControl, Parameters};

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses `HOST:PORT` to listen on, up to 16 with the same port; port 0 selects a free one. A `-` before an
    /// address makes it optional: the host may lack it. Without addresses, clients are served only over TLS.
    pub addrs: Vec<String>,
    /// A Unix socket to listen on as well, with the permissions of its file (`None`: by the process' umask). An
    /// existing socket on which no program listens is replaced.
    pub unix: Option<(PathBuf, Option<u32>)>,
    /// Number of event loops, each a thread; at least one runs. With a fixed split, the number of all its threads.
    pub threads: usize,
    /// Which threads apply changes to the order of keys: the store's threads, or the loops as a pool
    /// (`docs/decisions/0049-split-threads-by-the-papers-equation-on-request.md`). With a fixed split, the store must
    /// be opened with its number of backend threads ([`hikv::Tuning::background_threads`]).
    pub split: Sharing,
    /// Maximum number of clients; fewer if the process may not open enough files.
    pub max_clients: usize,
    /// Maximum length of a request's argument in bytes, at most 1 GiB.
    pub bulk_bytes_max: usize,
    /// The password of the user `default`; every client is that user until it logs in as another.
    pub password: Option<Secret>,
    /// An ACL file with lines `user NAME RULES…`, as in Redis.
    pub acl_file: Option<PathBuf>,
    /// The location of backups by `SAVE` and `BGSAVE`; by default `backup` in the store's directory.
    pub backup_dir: Option<PathBuf>,
    /// Refuses addresses that other hosts can reach while the user `default` needs no password.
    pub protected: bool,
    /// TLS, in addition to `addrs`.
    pub tls: Option<Tls>,
    /// Builds the order of keys at start, instead of at the first range query.
    pub ordered: bool,
    /// `HOST:PORT` of the monitoring port ([`crate::HttpPort`]); `None` for no such port.
    pub http: Option<String>,
    /// Whether that port uses TLS, with the certificates of `tls`.
    pub http_tls: bool,
    /// Host names under which that port may be requested, in addition to its addresses and `localhost`; `*` accepts
    /// any.
    pub http_hosts: Vec<String>,
    /// The parameters given at start. Parameters with a field in this struct are taken from the field.
    pub parameters: Parameters,
    /// The log that `CONFIG SET loglevel` changes.
    pub log: Option<LogControl>,
    /// Maximum time for a client to read its last replies when the server stops.
    pub drain_max: Duration,
}

/// TLS, versions 1.2 and 1.3.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Addresses to listen on, as in [`Config::addrs`].
    pub addrs: Vec<String>,
    /// The certificates.
    pub files: TlsFiles,
    /// Maximum duration of a handshake.
    pub handshake_max: Duration,
}

impl Tls {
    /// Creates a configuration of TLS at one address, with handshakes of at most ten seconds.
    pub fn new(addr: impl Into<String>, files: TlsFiles) -> Tls {
        Tls { addrs: vec![addr.into()], files, handshake_max: Duration::from_secs(10) }
    }
}

impl Default for Config {
    /// Redis' defaults on the loopback interface, with one thread per core except one, which the store's worker for the
    /// order of keys and the kernel's network stack need.
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
