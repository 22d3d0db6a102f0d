//! Checks before the store is opened: whether the configuration is permitted and possible.

use std::io;
use std::net::TcpListener;

use hikv::pool::Split;

use crate::Config;
use crate::administration::start::acl_of;
use crate::connections::transport::Certificates;
use crate::connections::{listen, unix};
use acl::Acl;

/// A server without its store: users and certificates are loaded, and addresses are bound but not listening. Errors in
/// the configuration are reported here, before a store is created or read.
pub struct Prepared {
    pub(crate) config: Config,
    pub(crate) acl: Acl,
    pub(crate) certificates: Option<Certificates>,
    pub(crate) bound: Vec<TcpListener>,
    pub(crate) tls_bound: Vec<TcpListener>,
    pub(crate) unix_bound: Option<unix::Bound>,
}

impl Prepared {
    /// Prepares a server for `config`.
    ///
    /// # Errors
    /// An address that cannot be resolved or bound, or none at all; an address reachable from other hosts without a
    /// password ([`Config::protected`]); a fixed split of a different number of threads; an unreadable or invalid ACL
    /// or certificate file.
    pub fn of(config: Config) -> io::Result<Prepared> {
        if let Some(split) = config.split.fixed().filter(|split| split.serving + split.backend != config.threads) {
            let (Split { serving, backend }, threads) = (split, config.threads);
            let what = format!(
                "split {serving}-{backend} contradicts --threads {threads}: omit --threads (io-threads), or set it to {}",
                serving + backend
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let acl = acl_of(&config)?;
        let certificates = config.tls.as_ref().map(|tls| Certificates::load(tls.files.clone())).transpose()?;
        let is_open = || Ok(acl.is_open());
        let bound = listen::bind_all(&config.addrs, &config, is_open)?;
        let tls_addrs = config.tls.as_ref().map_or(&[][..], |tls| &tls.addrs);
        let tls_bound = listen::bind_all(tls_addrs, &config, is_open)?;
        let unix = config.unix.as_ref().map(|(path, mode)| unix::bind(path, *mode));
        let unix_bound = unix.transpose()?;
        if bound.is_empty() && tls_bound.is_empty() && unix_bound.is_none() {
            let what = "no address to listen on: give --addr, --tls-addr or --unix";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Ok(Prepared { config, acl, certificates, bound, tls_bound, unix_bound })
    }
}
