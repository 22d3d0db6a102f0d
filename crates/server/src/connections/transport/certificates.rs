//! The server's certificate and key, and whose certificates it trusts: read from files at start, and anew when asked.

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

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificate {
    /// They are not asked for one.
    #[default]
    No,
    /// One that is shown must be good.
    Optional,
    /// A client without one is refused.
    Yes,
}

impl ClientCertificate {
    /// As `CONFIG` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClientCertificate::No => "no",
            ClientCertificate::Optional => "optional",
            ClientCertificate::Yes => "yes",
        }
    }

    /// What [`ClientCertificate::name`] gave.
    pub(crate) fn by_name(name: &str) -> Option<ClientCertificate> {
        [ClientCertificate::No, ClientCertificate::Optional, ClientCertificate::Yes]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// Where the certificates are; all files are PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate, followed by those that link it to an authority.
    pub certificate: PathBuf,
    /// The certificate's private key, not encrypted.
    pub key: PathBuf,
    /// The authorities whose certificates clients may show.
    pub client_ca: Option<PathBuf>,
    /// Whether they must; anything but `No` needs `client_ca`.
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

    /// What a new connection is served with.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.lock())
    }

    pub(crate) fn files(&self) -> TlsFiles {
        self.files.lock().clone()
    }

    /// Has new connections served with what these files hold; if that is wrong, with what was there before.
    pub(crate) fn change(&self, files: TlsFiles) -> io::Result<()> {
        let fresh = read(&files)?;
        *self.files.lock() = files;
        *self.current.lock() = fresh;
        Ok(())
    }
}

/// Reads a running server's certificates anew.
#[derive(Clone)]
pub struct TlsReload {
    certificates: Arc<Certificates>,
}

impl TlsReload {
    pub(crate) fn new(certificates: Arc<Certificates>) -> TlsReload {
        TlsReload { certificates }
    }

    /// Has new connections served with what the files hold now.
    ///
    /// # Errors
    /// If they cannot be read, or do not fit together; connections are then served with what they held before.
    pub fn reload(&self) -> io::Result<()> {
        self.certificates.change(self.certificates.files())
    }
}

/// A line of a PEM file whose key needs a password, in PKCS #8 or in older forms.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn read(files: &TlsFiles) -> io::Result<Arc<ServerConfig>> {
    let needed = [(&files.certificate, "certificate", "--tls-cert"), (&files.key, "private key", "--tls-key")];
    for (path, what, option) in needed {
        if path.as_os_str().is_empty() {
            return Err(invalid(format_args!(
                "TLS is asked for, and no file of the {what} is given: {option} names it"
            )));
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
        invalid(
            "clients are asked for certificates, and there is no file of the authorities that may have issued them: \
             --tls-client-ca names it",
        )
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
        true => invalid(format_args!("{0}: it is encrypted; `openssl pkey -in {0}` decrypts it", path.display())),
        false => at(error),
    })
}

/// The text of a file, without the mark that some editors put before it.
fn read_pem(path: &Path) -> Result<Vec<u8>, pem::Error> {
    read_unmarked(path).map_err(pem::Error::Io)
}

/// Names the file and what was sought in it.
fn pem_error(path: &Path, error: pem::Error, what: &str) -> io::Error {
    let path = path.display();
    match error {
        pem::Error::Io(error) => io::Error::new(error.kind(), format!("{path}: {error}")),
        pem::Error::NoItemsFound => invalid(format_args!("{path}: it holds no {what} in PEM")),
        error => invalid(format_args!("{path}: {error}")),
    }
}

fn invalid(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}
