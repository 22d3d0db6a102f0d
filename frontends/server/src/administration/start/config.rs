//! Conversion of parameters to a configuration.

use std::num::NonZero;
use std::path::PathBuf;

use hikv::pool::{Plan, Sharing, Split};

use super::Parameters;
use crate::config::{Config, Tls};
use crate::connections::transport::{ClientCertificate, TlsFiles};

/// Redis' default address.
const HOST: &str = "127.0.0.1";
const PORT: &str = "6379";

impl Parameters {
    /// Returns the configuration for these parameters; missing ones have the values of [`Config::default`].
    pub fn config(&self) -> Config {
        let default = Config::default();
        let number = |name| self.value(name).and_then(|value| value.parse().ok());
        let hosts = self.text("bind").unwrap_or(HOST);
        let port = self.value("port").unwrap_or(PORT);
        let split = self.split();
        Config {
            addrs: if port == "0" { Vec::new() } else { addresses(hosts, port) },
            unix: self.path("unixsocket").map(|path| (path, self.unix_mode())),
            threads: number("io-threads").unwrap_or_else(|| thread_count(split)),
            split,
            max_clients: number("maxclients").unwrap_or(default.max_clients),
            bulk_bytes_max: number("proto-max-bulk-len").unwrap_or(default.bulk_bytes_max),
            // A `user default` line contains more than the password.
            password: self.password.clone().filter(|_| !self.users.contains_key(acl::DEFAULT_USER)),
            acl_file: self.path("aclfile"),
            backup_dir: self.path("backup-dir"),
            protected: self.value("protected-mode") != Some("no"),
            tls: self.value("tls-port").filter(|port| *port != "0").map(|port| self.tls(hosts, port)),
            ordered: self.value("ordered") == Some("yes"),
            http: self.text("http").map(str::to_owned),
            http_tls: self.value("http-tls") == Some("yes"),
            http_hosts: self.value("http-hosts").unwrap_or("").split_whitespace().map(str::to_owned).collect(),
            parameters: self.clone(),
            ..default
        }
    }

    /// Returns the permissions of the socket file, if given.
    fn unix_mode(&self) -> Option<u32> {
        let mode = self.value("unixsocketperm").and_then(|mode| u32::from_str_radix(mode, 8).ok());
        mode.filter(|mode| *mode != 0)
    }

    /// Returns which threads apply changes to the order of keys ([`Config::split`]).
    pub fn split(&self) -> Sharing {
        self.value("split").and_then(|split| split.parse().ok()).unwrap_or(Config::default().split)
    }

    fn tls(&self, hosts: &str, port: &str) -> Tls {
        self.tls_at(addresses(self.text("tls-bind").unwrap_or(hosts), port))
    }

    /// Returns TLS at these addresses ([`Tls::addrs`]), with the certificate files of the parameters.
    pub fn tls_at(&self, addrs: Vec<String>) -> Tls {
        let client_ca = self.path("tls-ca-cert-file");
        let default_policy = if client_ca.is_some() { ClientCertificate::Yes } else { ClientCertificate::No };
        let files = TlsFiles {
            certificate: self.path("tls-cert-file").unwrap_or_default(),
            key: self.path("tls-key-file").unwrap_or_default(),
            client_certificate: self
                .value("tls-auth-clients")
                .and_then(ClientCertificate::by_name)
                .unwrap_or(default_policy),
            client_ca,
        };
        Tls { addrs, ..Tls::new("", files) }
    }

    /// Returns a parameter's value if it is not empty.
    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).filter(|value| !value.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }
}

/// Returns the number of serving threads: the number in a fixed split; one per core with a pool, because then no thread
/// of the store needs its own core.
fn thread_count(split: Sharing) -> usize {
    let core_count = || std::thread::available_parallelism().map_or(1, NonZero::get);
    match split {
        Sharing::Beside => Config::default().threads,
        Sharing::Pool(Plan::Fixed(Split { serving, backend })) => serving + backend,
        Sharing::Pool(Plan::Adaptive(_)) => core_count(),
    }
}

/// Returns `HOST:PORT` for each of the hosts.
fn addresses(hosts: &str, port: &str) -> Vec<String> {
    hosts.split_whitespace().map(|host| address(host, port)).collect()
}

/// Returns `HOST:PORT`; `*` and `::*` mean all addresses of this host, and a `-` before the host is kept before the
/// address, as in Redis.
fn address(host: &str, port: &str) -> String {
    let (optional, host) = host.strip_prefix('-').map_or(("", host), |host| ("-", host));
    match host {
        "*" => format!("{optional}0.0.0.0:{port}"),
        "::*" => format!("{optional}[::]:{port}"),
        host if host.contains(':') && !host.starts_with('[') => format!("{optional}[{host}]:{port}"),
        host => format!("{optional}{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Config {
        let mut parameters = Parameters::default();
        pairs.iter().for_each(|(name, value)| parameters.set(name, value).expect("a parameter"));
        parameters.config()
    }

    #[test]
    fn ports_and_hosts_make_addresses() {
        let tls_addrs = |config: Config| config.tls.expect("TLS is asked for").addrs;
        assert_eq!(config(&[]).addrs, Config::default().addrs);
        assert_eq!(config(&[("bind", "::1"), ("port", "7")]).addrs, ["[::1]:7"]);
        assert_eq!(config(&[("bind", "* -::*")]).addrs, ["0.0.0.0:6379", "-[::]:6379"]);
        let only = config(&[("port", "0"), ("tls-port", "7"), ("bind", ":: -10.0.0.1")]);
        assert!(only.addrs.is_empty());
        assert_eq!(tls_addrs(only), ["[::]:7", "-10.0.0.1:7"]);
        let apart = config(&[("tls-port", "7"), ("tls-bind", "10.0.0.1 ::1")]);
        assert_eq!(tls_addrs(apart), ["10.0.0.1:7", "[::1]:7"]);
    }

    #[test]
    fn client_authorities_require_certificates() {
        let wanted = |pairs: &[_]| {
            let tls = config(&[pairs, &[("tls-port", "7")][..]].concat()).tls.expect("TLS is asked for");
            tls.files.client_certificate
        };
        assert_eq!(wanted(&[]), ClientCertificate::No);
        assert_eq!(wanted(&[("tls-ca-cert-file", "ca")]), ClientCertificate::Yes);
        assert_eq!(
            wanted(&[("tls-ca-cert-file", "ca"), ("tls-auth-clients", "optional")]),
            ClientCertificate::Optional
        );
    }
}
