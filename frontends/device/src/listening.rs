//! The listening sockets: bound before the store is opened, so that an invalid configuration creates no store.
//!
//! Hosts that connect before the device runs wait for it, as many as the sockets' queues hold.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use mio::net::TcpListener;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::Config;
use crate::device::StartError;
use crate::limits;

/// Files other than connections; half of the process' limit if that is less.
const RESERVED_FILE_COUNT: u64 = 128;

/// Bound sockets that are not served yet.
#[derive(Debug)]
pub struct Listening {
    pub(crate) tcp: TcpListener,
    pub(crate) shm: Option<rings::Listener>,
    pub(crate) connection_count_max: usize,
}

impl Listening {
    /// Binds the sockets of `config`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn bind(config: &Config) -> Result<Listening, StartError> {
        check_names(config)?;
        let addrs = addrs_of(&config.addr).map_err(StartError::Listen)?;
        let open = addrs.iter().find(|addr| !addr.ip().is_loopback());
        if let Some(addr) = open.filter(|_| !config.is_insecure && config.secrets.is_none()) {
            return Err(StartError::Insecure(*addr));
        }
        let files_each = if config.shm.is_some() { 2 } else { 1 };
        let connection_count_max = places(raise_file_limit(files_each), files_each);
        let tcp = listen(&addrs).map_err(StartError::Listen)?;
        let shm = config.shm.as_ref().map(|(path, mode)| listen_at(path, *mode)).transpose()?;
        Ok(Listening { tcp, shm, connection_count_max })
    }
}

fn addrs_of(name: &str) -> io::Result<Vec<SocketAddr>> {
    if !name.contains(':') {
        return Err(io::Error::new(ErrorKind::InvalidInput, "expected HOST:PORT"));
    }
    Ok(name.to_socket_addrs()?.collect())
}

/// Listens on the first of a name's addresses that works: a machine may resolve an address that it does not have.
fn listen(addrs: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut refused = ErrorKind::NotFound.into();
    for addr in addrs {
        match TcpListener::bind(*addr) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn listen_at(path: &Path, mode: u32) -> Result<rings::Listener, StartError> {
    rings::Listener::bind(path, mode).map_err(|error| StartError::Shm(path.to_owned(), error))
}

fn check_names(config: &Config) -> Result<(), StartError> {
    let is_name = |name: &&String| nvme::nqn_of(&[name.as_bytes(), &[0]].concat()).as_ref() == Some(*name);
    match config.subsystem.iter().chain(&config.hosts).find(|name| !is_name(name)) {
        Some(wrong) => Err(StartError::Name(wrong.clone())),
        None => Ok(()),
    }
}

/// Raises the process' soft limit on open files for all connections of `files_each` files, and returns the new limit.
fn raise_file_limit(files_each: u64) -> Option<u64> {
    let wanted = limits::CONNECTION_COUNT_MAX as u64 * files_each + RESERVED_FILE_COUNT;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // If this fails, the old limit stays and there are fewer slots.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current
}

/// Returns the number of connections of `files_each` files that the limit permits. The store's files stay reserved,
/// however many hosts connect.
fn places(file_limit: Option<u64>, files_each: u64) -> usize {
    let most = limits::CONNECTION_COUNT_MAX as u64;
    let count = file_limit.map_or(most, |limit| (limit - RESERVED_FILE_COUNT.min(limit / 2)) / files_each);
    count.clamp(1, most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Like `localhost` where IPv6 is off.
    #[test]
    fn name_is_resolved_to_local_address() {
        let lacking = SocketAddr::from(([192, 0, 2, 1], 0));
        let own = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen(&[lacking, own]).expect("it has the second");
        assert_eq!(listener.local_addr().expect("it listens").ip(), own.ip());
        assert!(listen(&[lacking]).is_err() && listen(&[]).is_err());
    }

    /// A shared-memory host has a socket and an eventfd.
    #[test]
    fn connections_leave_the_store_its_files() {
        assert_eq!(places(None, 2), limits::CONNECTION_COUNT_MAX);
        assert_eq!(places(Some(1 << 20), 2), limits::CONNECTION_COUNT_MAX);
        // A host needs two connections, one for each queue.
        let few = [(128, 1, 64), (64, 2, 16), (0, 2, 1)];
        let many = [(1152, 1, 1024), (1152, 2, 512), (1024, 1, 896), (256, 1, 128)];
        for (limit, files_each, count) in many.into_iter().chain(few) {
            assert_eq!(places(Some(limit), files_each), count, "{limit} files");
        }
    }
}
