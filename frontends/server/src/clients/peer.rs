//! The remote end of a client's connection.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// A network address, or the path of the Unix socket that the client connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    Ip(SocketAddr),
    Unix(Arc<Path>),
}

impl Peer {
    /// Returns whether the address is on another host.
    pub(crate) fn is_elsewhere(&self) -> bool {
        match self {
            Peer::Ip(addr) => !addr.ip().to_canonical().is_loopback(),
            Peer::Unix(_) => false,
        }
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Peer::Unix(_))
    }

    /// Formats the peer as in Redis' `MONITOR` output.
    pub(crate) fn monitored(&self) -> String {
        match self {
            Peer::Ip(addr) => addr.to_string(),
            Peer::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

/// Formats the peer as in `CLIENT LIST`: a path has port 0, as in Redis.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Ip(addr) => addr.fmt(f),
            Peer::Unix(path) => write!(f, "{}:0", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_several_addresses() {
        let is_elsewhere = |ip: &str| Peer::Ip(SocketAddr::new(ip.parse().expect("an address"), 1)).is_elsewhere();
        for ip in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_elsewhere(ip), "{ip}");
        }
        for ip in ["10.0.0.1", "0.0.0.0", "::", "::ffff:10.0.0.1", "fe80::1"] {
            assert!(is_elsewhere(ip), "{ip}");
        }
        assert!(!Peer::Unix(Path::new("/run/hikv.sock").into()).is_elsewhere());
    }
}
