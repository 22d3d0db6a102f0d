//! Reasons why a handshake failed, for the operator.

use std::io::{self, ErrorKind};

use rustls::{CertificateError, Error};

/// Converts the error for the log. A certificate of X.509 version 1, which `openssl x509` creates without extensions,
/// gets a readable text: the library only prints the name of a constant.
pub(super) fn explained(error: Error) -> io::Error {
    if is_of_version_1(&error) {
        let text = "the certificate is X.509 version 1 instead of 3; sign it with extensions (openssl x509 -extfile)";
        return io::Error::new(ErrorKind::InvalidData, text);
    }
    io::Error::new(ErrorKind::InvalidData, error)
}

fn is_of_version_1(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(cause)) = error else { return false };
    matches!(cause.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::RootCertStore;
    use rustls::crypto::ring;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::server::WebPkiClientVerifier;

    use super::explained;

    /// `openssl x509 -req -signkey k.pem -days 36500`, without extensions.
    const OF_VERSION_1: &str = include_str!("../../../tests/server/version-1.pem");

    #[test]
    fn version_1_certificate_is_named() {
        let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).expect("a certificate is made").cert;
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("the authority is taken");
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("it has a root");
        let certificate = CertificateDer::from_pem_slice(OF_VERSION_1.as_bytes()).expect("it is PEM");

        let refusal = verifier.verify_client_cert(&certificate, &[], UnixTime::now()).expect_err("it is of version 1");
        assert!(explained(refusal).to_string().contains("X.509 version 1"));
    }
}
