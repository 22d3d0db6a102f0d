//! `--tls-…`: the addresses and certificates for TLS clients.

use std::io;
use std::path::PathBuf;
use std::thread;

use clap::{Args, ValueEnum};
use server::{Config, Parameters, TlsReload};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::given;

#[derive(Clone, Copy, ValueEnum)]
enum AuthClients {
    /// Request no certificate
    No,
    /// Accept clients without a certificate; a presented one must be valid
    Optional,
    /// Refuse clients without a valid certificate
    Yes,
}

/// The options.
#[derive(Args)]
pub(crate) struct TlsArgs {
    /// Address to listen on for TLS, in the form of --addr; may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    tls_addr: Vec<String>,
    /// Listen only on --tls-addr, not on --addr
    #[arg(long, conflicts_with = "addr")]
    tls_only: bool,
    /// The server's certificate and the intermediate certificates, in PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The authorities that issue client certificates, in PEM
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Require certificates of clients [default: yes with --tls-client-ca, otherwise no]
    #[arg(long, value_enum, value_name = "HOW")]
    tls_auth_clients: Option<AuthClients>,
}

impl TlsArgs {
    /// Sets the options in a server's parameters.
    pub(crate) fn give(&self, parameters: &mut Parameters) -> Result<(), Failure> {
        for (name, path) in [
            ("tls-cert-file", &self.tls_cert),
            ("tls-key-file", &self.tls_key),
            ("tls-ca-cert-file", &self.tls_client_ca),
        ] {
            given::path(parameters, name, path.as_deref())?;
        }
        given::choice(parameters, "tls-auth-clients", self.tls_auth_clients)
    }

    /// Applies options that parameters cannot express: port 0 selects a free port here, and disables the port there.
    pub(crate) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if !self.tls_addr.is_empty() {
            config.tls = Some(config.parameters.tls_at(self.tls_addr.clone()));
        }
        if self.tls_only {
            config.addrs = Vec::new();
        }
        if config.tls.is_none() && (self.tls_only || self.has_files()) {
            return Err(Failure::at("TLS", "no address to listen on; give --tls-addr"));
        }
        Ok(())
    }

    fn has_files(&self) -> bool {
        [&self.tls_cert, &self.tls_key, &self.tls_client_ca].iter().any(|path| path.is_some())
            || self.tls_auth_clients.is_some()
    }
}

/// Reloads the files at each SIGHUP and logs the result. SIGHUP never ends the server, even without files, because
/// service managers send it to any service.
pub(crate) fn reload_on_hangup(reload: Option<TlsReload>) -> io::Result<()> {
    let mut hangups = Signals::new([SIGHUP])?;
    let reload = move || {
        for _ in hangups.forever() {
            match reload.as_ref().map(TlsReload::reload) {
                None => tracing::info!("SIGHUP: there are no certificates to reload"),
                Some(Ok(())) => tracing::info!("certificates reloaded"),
                Some(Err(error)) => {
                    tracing::error!(%error, "cannot reload the certificates; the previous ones stay in use")
                }
            }
        }
    };
    thread::Builder::new().name("hikv-hangup".into()).spawn(reload).map(drop)
}
