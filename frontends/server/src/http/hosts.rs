//! The host names under which this port may be requested.
//!
//! A page of another site can make its own name resolve to this host; a browser then treats this port's responses as
//! that site's (DNS rebinding). The browser still sends the host name, so unknown names are refused. Accepted are
//! loopback addresses, the local address of the connection, `localhost`, the name in the listening address, and
//! configured names.

use std::net::IpAddr;

use super::request::Host;
use super::response::Response;
use crate::Config;

/// Accepts every name.
const ANY: &str = "*";

pub(super) struct Hosts(Vec<String>);

impl Hosts {
    pub(super) fn of(config: &Config) -> Hosts {
        let listened = config.http.as_deref().map(|addr| name_of(addr).to_owned());
        Hosts(config.http_hosts.iter().cloned().chain(listened).chain(["localhost".into()]).collect())
    }

    /// Returns the refusal of a request for another host; `local` is the local address of the connection.
    pub(super) fn refusal(&self, host: &Host<'_>, local: Option<IpAddr>) -> Option<Response> {
        match host {
            Host::Unneeded => None,
            Host::Wrong => Some(Response::explained(400, "exactly one Host header is required")),
            Host::Named(host) if self.allows(host, local) => None,
            Host::Named(host) => {
                let why = format!("host '{}' is not allowed; allow it with --http-host NAME", host.escape_debug());
                Some(Response::explained(421, &why))
            }
        }
    }

    fn allows(&self, host: &str, local: Option<IpAddr>) -> bool {
        let name = name_of(host);
        if let Ok(ip) = name.parse::<IpAddr>()
            && (ip.to_canonical().is_loopback() || Some(ip.to_canonical()) == local)
        {
            return true;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        self.0.iter().any(|known| known == ANY || known.eq_ignore_ascii_case(name))
    }
}

/// Returns the part before the port, without the brackets of an address.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(config: &Config, host: &str) -> bool {
        Hosts::of(config).allows(host, Some("10.0.0.7".parse().expect("an address")))
    }

    #[test]
    fn this_host_has_its_addresses_and_names() {
        let config = Config { http: Some("watch.example:80".into()), ..Config::default() };
        for host in ["localhost", "LocalHost:9121", "localhost.", "127.0.0.1:80", "127.1.2.3", "[::1]:80", "[::1]"] {
            assert!(allows(&config, host), "{host}");
        }
        for host in ["10.0.0.7:80", "watch.example", "[::ffff:127.0.0.1]"] {
            assert!(allows(&config, host), "{host}");
        }
        for host in ["evil.example", "evil.example:80", "10.0.0.8", "localhost.evil.example", "", ":80", "[::2]"] {
            assert!(!allows(&config, host), "{host}");
        }
    }

    #[test]
    fn names_are_given() {
        let named = |names: &[&str]| Config {
            http_hosts: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Config::default()
        };
        assert!(allows(&named(&["a.example", "b.example"]), "B.example:1"));
        assert!(!allows(&named(&["a.example"]), "b.example"));
        assert!(allows(&named(&["*"]), "b.example"));
    }
}
