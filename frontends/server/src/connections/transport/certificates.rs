//! The server's certificate and key, and the trusted authorities, read from files at start and on reload.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::refusal::explained;
use crate::administration::byte_order_mark::read_unmarked;

/// The policy for client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificate {
    /// No certificate is requested.
    #[default]
    No,
    /// A presented certificate must be valid.
    Optional,
    /// A client without a certificate is refused.
    Yes,
}

impl ClientCertificate {
    /// Returns the name in `CONFIG`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClientCertificate::No => "no",
            ClientCertificate::Optional => "optional",
            ClientCertificate::Yes => "yes",
        }
    }

    /// Parses a name returned by [`ClientCertificate::name`].
    pub(crate) fn by_name(name: &str) -> Option<ClientCertificate> {
        [ClientCertificate::No, ClientCertificate::Optional, ClientCertificate::Yes]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// Paths of the certificate files, all in PEM format.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate, followed by its chain to an authority.
    pub certificate: PathBuf,
    /// The certificate's private key, not encrypted.
    pub key: PathBuf,
    /// The authorities that sign client certificates.
    pub client_ca: Option<PathBuf>,
    /// The policy for client certificates; any value except `No` needs `client_ca`.
    pub client_certificate: ClientCertificate,
}

pub(crate) struct Certificates {
    files: Mutex<TlsFiles>,
    current: Mutex<Arc<ServerConfig>>,
}

impl Certificates {
    pub(crate) fn load(files: TlsFiles) -> io::Result<Certificates> {
        let current = Mutex::new(read(&files)?);
        Ok(Certificates { files: Mutex::new(files), current })
    }

    /// Returns the configuration for new connections.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.lock())
    }

    pub(crate) fn files(&self) -> TlsFiles {
        self.files.lock().clone()
    }

    /// Uses these files for new connections; on error the previous ones stay in use.
    pub(crate) fn change(&self, files: TlsFiles) -> io::Result<()> {
        let fresh = read(&files)?;
        *self.files.lock() = files;
        *self.current.lock() = fresh;
        Ok(())
    }
}

/// Reloads the certificates of a running server.
#[derive(Clone)]
pub struct TlsReload {
    certificates: Arc<Certificates>,
}

impl TlsReload {
    pub(crate) fn new(certificates: Arc<Certificates>) -> TlsReload {
        TlsReload { certificates }
    }

    /// Uses the files' present contents for new connections.
    ///
    /// # Errors
    /// Files that cannot be read or do not match each other; new connections then use the previous contents.
    pub fn reload(&self) -> io::Result<()> {
        self.certificates.change(self.certificates.files())
    }
}

/// A line of a PEM file whose key needs a password, in PKCS #8 or older formats.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn read(files: &TlsFiles) -> io::Result<Arc<ServerConfig>> {
    let needed = [(&files.certificate, "certificate", "--tls-cert"), (&files.key, "private key", "--tls-key")];
    for (path, what, option) in needed {
        if path.as_os_str().is_empty() {
            return Err(invalid(format_args!("TLS is enabled without a file for the {what}; give one with {option}")));
        }
    }
    let chain = read_certificates(&files.certificate)?;
    let key = read_key(&files.key)?;
    let verifier = client_verifier(files)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| {
            let (certificate, key) = (files.certificate.display(), files.key.display());
            invalid(format_args!("{certificate} with the key {key}: {}", explained(error)))
        })?;
    Ok(Arc::new(config))
}

fn client_verifier(files: &TlsFiles) -> io::Result<Arc<dyn ClientCertVerifier>> {
    if files.client_certificate == ClientCertificate::No {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let path = files.client_ca.as_deref().ok_or_else(|| {
        invalid("client certificates are requested without a file of their authorities; give one with --tls-client-ca")
    })?;
    let mut authorities = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        authorities
            .add(certificate)
            .map_err(|error| invalid(format_args!("{}: {}", path.display(), explained(error))))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(authorities.into(), ring::default_provider().into());
    let builder = match files.client_certificate {
        ClientCertificate::Optional => builder.allow_unauthenticated(),
        _ => builder,
    };
    builder.build().map_err(|error| invalid(format_args!("{}: {error}", path.display())))
}

fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let at = |error| pem_error(path, error, "certificate");
    let text = read_pem(path).map_err(at)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(at)?;
    if certificates.is_empty() {
        return Err(pem_error(path, pem::Error::NoItemsFound, "certificate"));
    }
    Ok(certificates)
}

fn read_key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    let at = |error| pem_error(path, error, "private key");
    let text = read_pem(path).map_err(at)?;
    let is_encrypted = || text.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match is_encrypted() {
        true => invalid(format_args!(
            "{0}: the private key is encrypted; decrypt it with `openssl pkey -in {0}`",
            path.display()
        )),
        false => at(error),
    })
}

/// Reads a file, without a byte order mark.
fn read_pem(path: &Path) -> Result<Vec<u8>, pem::Error> {
    read_unmarked(path).map_err(pem::Error::Io)
}

/// Creates an error that names the file and its expected contents.
fn pem_error(path: &Path, error: pem::Error, what: &str) -> io::Error {
    let path = path.display();
    match error {
        pem::Error::Io(error) => io::Error::new(error.kind(), format!("{path}: {error}")),
        pem::Error::NoItemsFound => invalid(format_args!("{path}: no {what} in PEM format found")),
        error => invalid(format_args!("{path}: {error}")),
    }
}

fn invalid(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}
