//! `--tls-…`: where clients are served by TLS, and with which certificates.

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
    /// Clients are not asked for a certificate
    No,
    /// A certificate that a client shows must be good
    Optional,
    /// Clients without a good certificate are refused
    Yes,
}

/// The options, as `serve` takes them.
#[derive(Args)]
pub(crate) struct TlsArgs {
    /// Where to listen for TLS, as --addr
    #[arg(long, value_name = "HOST:PORT")]
    tls_addr: Vec<String>,
    /// Serve clients by TLS alone: --addr is not listened on
    #[arg(long, conflicts_with = "addr")]
    tls_only: bool,
    /// The server's certificate and those that link it to an authority, in PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The authorities that issue clients' certificates, in PEM
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// Whether clients must show a certificate; by default yes with --tls-client-ca, otherwise no
    #[arg(long, value_enum, value_name = "HOW")]
    tls_auth_clients: Option<AuthClients>,
}

impl TlsArgs {
    /// Gives the options to the parameters.
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

    /// Takes up what parameters cannot say: port 0 is a free one here, and none there.
    pub(crate) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if !self.tls_addr.is_empty() {
            config.tls = Some(config.parameters.tls_at(self.tls_addr.clone()));
        }
        if self.tls_only {
            config.addrs = Vec::new();
        }
        if config.tls.is_none() && (self.tls_only || self.has_files()) {
            return Err(Failure::at("TLS", "it is asked for, and not where to listen; give --tls-addr"));
        }
        Ok(())
    }

    fn has_files(&self) -> bool {
        [&self.tls_cert, &self.tls_key, &self.tls_client_ca].iter().any(|path| path.is_some())
            || self.tls_auth_clients.is_some()
    }
}

/// Has the files read anew whenever SIGHUP comes, and logs how that went. That signal ends no server, also where there are no files:
/// a service manager sends it to any.
pub(crate) fn reload_on_hangup(reload: Option<TlsReload>) -> io::Result<()> {
    let mut hangups = Signals::new([SIGHUP])?;
    let reload = move || {
        for _ in hangups.forever() {
            match reload.as_ref().map(TlsReload::reload) {
                None => tracing::info!("a hangup, and no certificates that could be read anew"),
                Some(Ok(())) => tracing::info!("the certificates were read anew"),
                Some(Err(error)) => tracing::error!(%error, "the certificates stay as they were"),
            }
        }
    };
    thread::Builder::new().name("hikv-hangup".into()).spawn(reload).map(drop)
}
