//! Finds the server that has a store open, so that a command can send its request to the server.
//!
//! The error of opening the store names the process that has the lock, and `/proc` lists the listening sockets of that
//! process, if this process may read them. The store contains no address. Only error messages depend on this, and reads
//! that would fail without it.

mod client;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use hikv::OpenError;

use crate::failure::{Failure, with_sources};

pub(crate) use client::{Client, Reply};

/// The state of a listening socket in `/proc/PID/net/tcp`.
const LISTENING: &str = "0A";

/// Returns the failure for a store that cannot be opened. If a server has it open, the failure gives its address.
pub(crate) fn unopened(error: OpenError) -> Failure {
    let text = with_sources(&error);
    match &error {
        OpenError::Locked { holder, .. } if holds(&error) => Failure::Error(match at(holder) {
            Some(client) => {
                format!("{text}; connect to it with redis-cli {} (BGSAVE makes a backup), or stop it", client.options())
            }
            None => format!("{text}; connect to it with redis-cli (BGSAVE makes a backup), or stop it"),
        }),
        OpenError::Missing { .. } => Failure::Error(format!("{text}; `hikv put`, `load` and `serve` create one")),
        OpenError::NotADirectory { .. } => {
            Failure::Error(format!("{text}; name the directory that contains store.hikv"))
        }
        _ => Failure::Error(text),
    }
}

/// Connects to the server that has the store open, after `error` of opening it.
///
/// # Errors
/// The failure for `error` if no server replies, or if it needs a password.
pub(crate) fn instead(error: OpenError) -> Result<Client, Failure> {
    let found = match &error {
        OpenError::Locked { holder, .. } if is_server(holder) => at(holder).filter(Client::is_open),
        _ => None,
    };
    found.ok_or_else(|| unopened(error))
}

/// Returns the failure for an error reply of the server that has the store at `dir` open.
pub(crate) fn refused(dir: &Path, reply: &Reply) -> Failure {
    Failure::at(dir.display(), format!("the server that has the store open replied: {reply}"))
}

/// Returns true if a server has the store open; it can make a backup.
pub(crate) fn holds(error: &OpenError) -> bool {
    matches!(error, OpenError::Locked { holder, .. } if is_server(holder))
}

fn is_server(holder: &str) -> bool {
    pid_of(holder).is_some() && holder.contains("hikv serve ")
}

/// Parses the process ID in `process 1234 (hikv serve ./data)`.
fn pid_of(holder: &str) -> Option<u32> {
    holder.strip_prefix("process ")?.split(' ').next()?.parse().ok()
}

/// Connects to the first address of the holder at which a Redis server replies.
fn at(holder: &str) -> Option<Client> {
    listening(pid_of(holder)?).into_iter().find_map(Client::connect)
}

/// Returns the addresses at which the process listens, if this process may read them.
fn listening(pid: u32) -> Vec<SocketAddr> {
    let sockets = sockets_of(pid);
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.filter_map(|line| listener_in(line, &sockets)).collect()
}

/// Returns the inode numbers of the open sockets of the process.
fn sockets_of(pid: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let names = files.filter_map(|file| fs::read_link(file.path()).ok()?.into_os_string().into_string().ok());
    names.filter_map(|name| Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// Parses the address in a line of the kernel's table; `None` unless it is one of `sockets` and listens.
fn listener_in(line: &str, sockets: &[String]) -> Option<SocketAddr> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, state, socket) = (words.get(1)?, words.get(3)?, words.get(9)?);
    if *state != LISTENING || !sockets.iter().any(|known| known == socket) {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    let ip = here(ip_of(ip)?);
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Parses an IP address, which the kernel writes as 32-bit words in the host's byte order.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Replaces the unspecified address by the loopback address, on which such a server also listens.
fn here(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process;

    use super::*;

    #[test]
    fn listening_addresses_are_found() {
        let found: Vec<SocketAddr> = ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"]
            .iter()
            .filter_map(|addr| TcpListener::bind(addr).ok())
            .map(|listener| {
                let bound = listener.local_addr().expect("it is bound");
                let wanted = SocketAddr::new(here(bound.ip()), bound.port());
                assert!(listening(process::id()).contains(&wanted), "{wanted}");
                wanted
            })
            .collect();
        assert!(found.len() >= 2, "{found:?}");
        assert!(!listening(process::id()).contains(&found[0]), "it is closed");
    }

    #[test]
    fn server_holders_are_recognised() {
        assert_eq!(pid_of("process 12 (hikv serve ./data)"), Some(12));
        assert!(is_server("process 12 (/usr/bin/hikv serve ./data)"));
        for other in ["process 12 (hikv load ./data x)", "another process", "process 12 and another, for reading"] {
            assert!(!is_server(other), "{other}");
        }
    }
}
