//! Administration: users, parameters, certificates and the log.

pub(crate) mod byte_order_mark;
pub(crate) mod file_limit;
pub(crate) mod log;
mod log_writer;
pub(crate) mod output_limits;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod start;

use std::sync::Arc;

use crate::clients::Peer;
use crate::connections::transport::Certificates;
use acl::Acl;
use log::Log;
use settings::Settings;
use start::ConfigFile;

/// The server's configuration.
pub(crate) struct Administration {
    pub(crate) settings: Settings,
    pub(crate) acl: Acl,
    pub(crate) log: Log,
    /// The configuration file that the settings were read from.
    pub(crate) config_file: Option<ConfigFile>,
    pub(crate) certificates: Option<Arc<Certificates>>,
    /// The TCP port without TLS.
    pub(crate) port: Option<u16>,
}

impl Administration {
    /// Returns whether the client's connection is refused by protected mode: it comes from another host, and no
    /// password is required.
    pub(crate) fn is_closed_to(&self, peer: &Peer) -> bool {
        peer.is_elsewhere() && self.settings.is_protected() && self.acl.is_open()
    }
}
