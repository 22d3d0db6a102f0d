//! Listening on the addresses `HOST:PORT` of a server.
//!
//! All addresses of a list use the same port; if it is 0, a free port of the first address. `-` before an address makes
//! it optional, as in Redis: no error if the host lacks the address. An address of a protocol that the kernel does not
//! support is always optional. `::` also accepts IPv4, unless the list has IPv4 addresses.
//!
//! Addresses are bound first. The sockets listen as soon as the server is ready; until then connections are refused.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as Listener, ToSocketAddrs};

use mio::net::TcpListener;
use rustix::io::Errno;
use rustix::net::{self as socket, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::Config;

/// Maximum number of addresses in a list, as in Redis.
pub(crate) const ADDR_COUNT_MAX: usize = 16;

/// Maximum number of connections that wait to be accepted, as in mio.
pub(super) const BACKLOG_COUNT_MAX: i32 = 1024;

/// Errors of a kernel that was built or booted without a protocol.
const UNKNOWN_PROTOCOL: [Errno; 5] =
    [Errno::AFNOSUPPORT, Errno::PFNOSUPPORT, Errno::PROTONOSUPPORT, Errno::SOCKTNOSUPPORT, Errno::NOPROTOOPT];

/// An address of a list.
struct Address<'a> {
    /// As given by the user.
    shown: &'a str,
    /// The addresses that the name resolves to.
    addrs: Vec<SocketAddr>,
    is_optional: bool,
}

/// Binds each of the addresses; for a name, the first resolved address that can be bound. Addresses beyond this host
/// are bound only if a password is required (`is_open` returns false) or the configuration permits them.
///
/// # Errors
/// An address that is invalid, or that cannot be bound and is not optional; or no address could be bound. The error
/// names the address.
pub(crate) fn bind_all(
    addrs: &[String],
    config: &Config,
    is_open: impl Fn() -> io::Result<bool>,
) -> io::Result<Vec<Listener>> {
    if addrs.len() > ADDR_COUNT_MAX {
        return Err(invalid(format!("too many addresses: {}; the limit is {ADDR_COUNT_MAX}", addrs.len())));
    }
    let mut wanted = addrs.iter().map(|addr| Address::of(addr)).collect::<io::Result<Vec<_>>>()?;
    have_one_port(&wanted)?;
    check_reach(&wanted, config, is_open)?;
    let only_v6 = wanted.iter().any(Address::has_v4);
    let mut listeners: Vec<Listener> = Vec::new();
    for wanted in &mut wanted {
        if let Some(first) = listeners.first() {
            let port = first.local_addr()?.port();
            wanted.addrs.iter_mut().for_each(|addr| addr.set_port(port));
        }
        listeners.extend(wanted.bind(only_v6)?);
    }
    match listeners.is_empty() && !addrs.is_empty() {
        true => Err(io::Error::new(
            ErrorKind::AddrNotAvailable,
            format!("{}: this host has no such address", addrs.join(" ")),
        )),
        false => Ok(listeners),
    }
}

/// Listens on the bound addresses.
pub(crate) fn at(bound: Vec<Listener>) -> io::Result<Vec<TcpListener>> {
    let listener = |listener: Listener| {
        let listening = socket::listen(&listener, BACKLOG_COUNT_MAX);
        listening.map_err(|error| about(&shown(&listener), &error.into()))?;
        Ok(TcpListener::from_std(listener))
    };
    bound.into_iter().map(listener).collect()
}

fn shown(listener: &Listener) -> String {
    listener.local_addr().map_or_else(|_| "an address".to_owned(), |addr| addr.to_string())
}

/// Listens on one address, bound as by [`bind_all`].
pub(crate) fn on(addr: &str, config: &Config, is_open: impl Fn() -> io::Result<bool>) -> io::Result<TcpListener> {
    bind_all(&[addr.to_owned()], config, is_open).and_then(at).map(|mut listeners| listeners.remove(0))
}

impl Address<'_> {
    fn of(shown: &str) -> io::Result<Address<'_>> {
        let required = shown.strip_prefix('-');
        let addr = required.unwrap_or(shown);
        if !addr.contains(':') {
            return Err(invalid(format!("{shown}: expected HOST:PORT, such as 127.0.0.1:6379")));
        }
        let addrs: Vec<SocketAddr> = addr.to_socket_addrs().map_err(|error| about(shown, &error))?.collect();
        match addrs.is_empty() {
            true => Err(invalid(format!("'{shown}' does not resolve to an address"))),
            false => Ok(Address { shown, addrs, is_optional: required.is_some() }),
        }
    }

    fn has_v4(&self) -> bool {
        self.addrs.iter().any(SocketAddr::is_ipv4)
    }

    fn port(&self) -> u16 {
        self.addrs[0].port()
    }

    /// Binds the first address that can be bound; `None` if an optional address is missing.
    fn bind(&self, only_v6: bool) -> io::Result<Option<Listener>> {
        let mut failed = None;
        for addr in &self.addrs {
            match bound(*addr, only_v6) {
                Ok(listener) => return Ok(Some(listener)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !self.may_lack(&error) => Err(about(self.shown, &error)),
            _ => {
                tracing::warn!(addr = self.shown, "address skipped: this host has no such address");
                Ok(None)
            }
        }
    }

    fn may_lack(&self, error: &io::Error) -> bool {
        let code = Errno::from_io_error(error);
        code.is_some_and(|code| UNKNOWN_PROTOCOL.contains(&code))
            || self.is_optional && error.kind() == ErrorKind::AddrNotAvailable
    }
}

fn have_one_port(wanted: &[Address<'_>]) -> io::Result<()> {
    let Some(first) = wanted.first() else { return Ok(()) };
    match wanted.iter().find(|other| other.port() != first.port()) {
        Some(other) => Err(invalid(format!(
            "{} and {} have different ports; use the same port for all addresses",
            first.shown, other.shown
        ))),
        None => Ok(()),
    }
}

/// Refuses addresses that other hosts can reach if no password is required.
fn check_reach(wanted: &[Address<'_>], config: &Config, is_open: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    let mut elsewhere = wanted.iter().flat_map(|wanted| &wanted.addrs).filter(|addr| !addr.ip().is_loopback());
    match elsewhere.next() {
        Some(addr) if config.protected && is_open()? => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "{addr} is reachable from other hosts and no password is required; set one (--password-file, requirepass) or an ACL \
                 file (--acl-file, aclfile), or permit it with --unprotected (protected-mode no)"
            ),
        )),
        _ => Ok(()),
    }
}

fn bound(addr: SocketAddr, only_v6: bool) -> io::Result<Listener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if addr.is_ipv6() && only_v6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    socket::bind(&socket, &addr)?;
    Ok(Listener::from(socket))
}

fn about(shown: &str, error: &io::Error) -> io::Error {
    let what = match error.kind() {
        ErrorKind::AddrInUse => "another program listens on this address".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("{shown}: {what}"))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reserved for documentation: no host has it.
    const NOWHERE: &str = "192.0.2.1:0";

    fn listen(addrs: &[&str]) -> io::Result<Vec<SocketAddr>> {
        let addrs: Vec<String> = addrs.iter().map(|addr| (*addr).to_owned()).collect();
        let config = Config { protected: false, ..Config::default() };
        bind_all(&addrs, &config, || Ok(true)).and_then(at)?.iter().map(TcpListener::local_addr).collect()
    }

    #[test]
    fn addresses_get_one_free_port() {
        let addrs = listen(&["127.0.0.1:0", "127.0.0.2:0"]).expect("they are of this host");
        assert_eq!(addrs.iter().map(|addr| addr.ip().to_string()).collect::<Vec<_>>(), ["127.0.0.1", "127.0.0.2"]);
        assert!(addrs[0].port() == addrs[1].port() && addrs[0].port() != 0);
    }

    #[test]
    fn wildcards_of_both_protocols_coexist() {
        let addrs = listen(&["0.0.0.0:0", "-[::]:0"]).expect("the second may be unknown");
        assert!(addrs.len() == 1 || addrs[0].port() == addrs[1].port(), "{addrs:?}");
    }

    #[test]
    fn unavailable_optional_address_is_skipped() {
        let optional = format!("-{NOWHERE}");
        assert_eq!(listen(&["127.0.0.1:0", &optional]).expect("one is there").len(), 1);
        for wrong in [&["127.0.0.1:0", NOWHERE][..], &[&optional]] {
            let refused = listen(wrong).expect_err("none is there");
            assert!(
                refused.kind() == ErrorKind::AddrNotAvailable && refused.to_string().contains(NOWHERE),
                "{refused}"
            );
        }
    }

    #[test]
    fn unusable_listen_address_is_named() {
        let taken = Listener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (taken, _listener) = taken.map(|(addr, listener)| (addr.to_string(), listener)).expect("a free port");
        let many = vec!["127.0.0.1:0"; ADDR_COUNT_MAX + 1];
        for (addrs, words) in [
            (&["-nowhere"][..], "-nowhere: "),
            (&[&format!("-{taken}")], &format!("{taken}: another program listens on this address")),
            (&["127.0.0.1:1", "127.0.0.2:2"], "127.0.0.1:1 and 127.0.0.2:2 have different ports"),
            (&many, "too many addresses: 17; the limit is 16"),
        ] {
            let refused = listen(addrs).expect_err("it cannot be").to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn only_local_addresses_without_password() {
        let addrs = ["127.0.0.1:0".to_owned(), "-0.0.0.0:0".to_owned()];
        let refused = bind_all(&addrs, &Config::default(), || Ok(true)).expect_err("everybody could do everything");
        assert!(
            refused.kind() == ErrorKind::PermissionDenied && refused.to_string().contains("0.0.0.0:0"),
            "{refused}"
        );
        assert_eq!(bind_all(&addrs[1..], &Config::default(), || Ok(false)).expect("there is a password").len(), 1);
    }
}
