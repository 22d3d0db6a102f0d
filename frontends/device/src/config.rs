//! The configuration of a device.

use std::path::PathBuf;

use crate::auth::Secrets;

/// The configuration of a device.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address and port to listen on; port 0 selects a free one.
    pub addr: String,
    /// The socket's path, and its permissions, for hosts of this machine that share memory with the device.
    pub shm: Option<(PathBuf, u32)>,
    /// Number of serving threads; 0 means one per processor, except one.
    pub thread_count: usize,
    /// The subsystem's name; derived from the store's identity by default.
    pub subsystem: Option<String>,
    /// The names of the hosts that may connect; all if empty. Names are not proof of identity: any host can claim any
    /// name.
    pub hosts: Vec<String>,
    /// The secrets for hosts that connect over TCP; no authentication if `None`. Shared-memory hosts are authenticated
    /// by the socket's permissions, and discovery needs no authentication.
    pub secrets: Option<Secrets>,
    /// Permits listening on addresses of other machines without authentication.
    pub is_insecure: bool,
    /// The store's maximum size in bytes, used for the capacity reported to hosts.
    pub capacity_bytes: u64,
    /// The store's directory, whose file system may have less space; if `None`, only `capacity_bytes` counts.
    pub store_dir: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            addr: format!("127.0.0.1:{}", nvme::PORT),
            shm: None,
            thread_count: 0,
            subsystem: None,
            hosts: Vec::new(),
            secrets: None,
            is_insecure: false,
            capacity_bytes: 1 << 40,
            store_dir: None,
        }
    }
}
