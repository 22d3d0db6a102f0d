//! How a device is offered.

use std::path::PathBuf;

use crate::auth::Secrets;

/// How a device is offered.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen: an address and a port; port 0 takes a free one.
    pub addr: String,
    /// Where hosts of this machine connect that share memory with the device: a socket's path, and its permissions.
    pub shm: Option<(PathBuf, u32)>,
    /// Threads that serve; 0 is one for each processor but one.
    pub thread_count: usize,
    /// The subsystem's name; by default one made of the store's identity.
    pub subsystem: Option<String>,
    /// The names of the hosts that may connect; all, if it is empty. Any host can give any name.
    pub hosts: Vec<String>,
    /// What hosts that connect over TCP have to show that they know; nothing, if it is `None`. Hosts that share memory have shown by the
    /// socket's permissions who they are, and discovery needs nothing.
    pub secrets: Option<Secrets>,
    /// Listen beyond this machine, though nobody proves who they are.
    pub is_insecure: bool,
    /// Bytes that the store may take, for what hosts are told of room.
    pub capacity_bytes: u64,
    /// The store's directory, whose file system may have less room; whatever is none has as much as `capacity_bytes` says.
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
