//! A store that a server holds: a program that wants to read it can ask the server.
//!
//! Where that listens the kernel knows: the process that holds the lock is named by the error, and its sockets by `/proc`, as far as
//! this process may look. Nothing is left in the store for that, and nothing but messages, and reads that would fail otherwise,
//! depends on it.

mod client;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use hikv::OpenError;

use crate::failure::Failure;

pub(crate) use client::{Client, Reply};

/// Of a line of `/proc/PID/net/tcp`: a socket that listens.
const LISTENING: &str = "0A";

/// What to say of a store that cannot be opened: of one that a server holds, how to ask that.
pub(crate) fn unopened(error: OpenError) -> Failure {
    match &error {
        OpenError::Locked { holder, .. } if holds(&error) => Failure::Error(match at(holder) {
            Some(client) => format!("{error}; ask it: redis-cli {}, where BGSAVE makes a backup", client.options()),
            None => format!("{error}; ask it by redis-cli, where BGSAVE makes a backup"),
        }),
        OpenError::Missing { .. } => Failure::Error(format!("{error}; `hikv put`, `load` and `serve` make one")),
        OpenError::NotADirectory { .. } => {
            Failure::Error(format!("{error}: name the directory that has store.hikv in it"))
        }
        other => Failure::Error(other.to_string()),
    }
}

/// The server that holds the store, by whose lock opening failed.
///
/// # Errors
/// That of the opening, if nobody answers or everybody has to say a password.
pub(crate) fn instead(error: OpenError) -> Result<Client, Failure> {
    let found = match &error {
        OpenError::Locked { holder, .. } if is_server(holder) => at(holder).filter(Client::is_open),
        _ => None,
    };
    found.ok_or_else(|| unopened(error))
}

/// The error of a server that was asked in the place of the store at `dir`.
pub(crate) fn refused(dir: &Path, reply: &Reply) -> Failure {
    Failure::at(dir.display(), format!("its server answers: {reply}"))
}

/// Whether a server holds the store, which can make a backup of it.
pub(crate) fn holds(error: &OpenError) -> bool {
    matches!(error, OpenError::Locked { holder, .. } if is_server(holder))
}

fn is_server(holder: &str) -> bool {
    pid_of(holder).is_some() && holder.contains("hikv serve ")
}

/// The process number in `process 1234 (hikv serve ./data)`.
fn pid_of(holder: &str) -> Option<u32> {
    holder.strip_prefix("process ")?.split(' ').next()?.parse().ok()
}

/// The first address of the holder at which a server for Redis clients answers.
fn at(holder: &str) -> Option<Client> {
    listening(pid_of(holder)?).into_iter().find_map(Client::connect)
}

/// Where the process listens, as far as this one may know.
fn listening(pid: u32) -> Vec<SocketAddr> {
    let sockets = sockets_of(pid);
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.filter_map(|line| listener_in(line, &sockets)).collect()
}

/// The numbers of the process' open sockets.
fn sockets_of(pid: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let names = files.filter_map(|file| fs::read_link(file.path()).ok()?.into_os_string().into_string().ok());
    names.filter_map(|name| Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// The address in a line of the kernel's table, if it is one of these sockets and listens.
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

/// The kernel writes words of 32 bits, each in the order of the host's bytes.
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

/// A server that listens everywhere listens at the loopback interface, too.
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
    fn holders_that_are_servers_are_told_from_others() {
        assert_eq!(pid_of("process 12 (hikv serve ./data)"), Some(12));
        assert!(is_server("process 12 (/usr/bin/hikv serve ./data)"));
        for other in ["process 12 (hikv load ./data x)", "another process", "process 12 and another, for reading"] {
            assert!(!is_server(other), "{other}");
        }
    }
}
