//! `--tls-…`: where clients are served by TLS, and with which certificates.

use std::io;
use std::path::PathBuf;
use std::thread;

use clap::{Args, ValueEnum};
use server::{ClientCertificate, Tls, TlsFiles, TlsReload};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

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
    /// Where to listen for TLS as well; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", requires_all = ["tls_cert", "tls_key"])]
    tls_addr: Option<String>,
    /// The server's certificate and those that link it to an authority, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_addr")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_addr")]
    tls_key: Option<PathBuf>,
    /// The authorities that issue clients' certificates, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_addr")]
    tls_client_ca: Option<PathBuf>,
    /// Whether clients must show a certificate; by default yes with --tls-client-ca, otherwise no
    #[arg(long, value_enum, value_name = "HOW", requires = "tls_client_ca")]
    tls_auth_clients: Option<AuthClients>,
}

impl TlsArgs {
    pub(crate) fn config(&self) -> Option<Tls> {
        let files = TlsFiles {
            certificate: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            client_ca: self.tls_client_ca.clone(),
            client_certificate: self.client_certificate(),
        };
        Some(Tls::new(self.tls_addr.clone()?, files))
    }

    fn client_certificate(&self) -> ClientCertificate {
        match self.tls_auth_clients {
            Some(AuthClients::No) => ClientCertificate::No,
            Some(AuthClients::Optional) => ClientCertificate::Optional,
            Some(AuthClients::Yes) => ClientCertificate::Yes,
            None if self.tls_client_ca.is_some() => ClientCertificate::Yes,
            None => ClientCertificate::No,
        }
    }
}

/// Has the files read anew whenever SIGHUP comes, and logs how that went. That signal ends no server, also where there are no files:
/// a service manager sends it to any.
pub(crate) fn reload_on_hangup(reload: Option<TlsReload>) -> io::Result<()> {
    let mut hangups = Signals::new([SIGHUP])?;
    thread::spawn(move || {
        for _ in hangups.forever() {
            match reload.as_ref().map(TlsReload::reload) {
                None => tracing::info!("a hangup, and no certificates that could be read anew"),
                Some(Ok(())) => tracing::info!("the certificates were read anew"),
                Some(Err(error)) => tracing::error!(%error, "the certificates stay as they were"),
            }
        }
    });
    Ok(())
}
