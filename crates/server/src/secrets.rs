//! What of a request nobody else may see: a password, wherever requests are shown.

use std::fmt;

use resp::Request;

/// What is shown in place of a secret, as in Redis.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// A password, which is not shown where a configuration is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Vec<u8>>> From<T> for Secret {
    fn from(bytes: T) -> Secret {
        Secret(bytes.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

/// Argument number `index` of a request as others may see it.
pub(crate) fn shown<'a>(request: &Request<'a>, index: usize) -> &'a [u8] {
    if index >= first_secret(request.name()) { REDACTED } else { request.argument(index) }
}

/// The number of the first argument that may be a secret, or be followed by one.
fn first_secret(name: &[u8]) -> usize {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("auth") {
        1
    } else if ["acl", "config", "hello"].into_iter().any(is) {
        2
    } else {
        usize::MAX
    }
}
