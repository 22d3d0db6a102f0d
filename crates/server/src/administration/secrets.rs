//! What of a request no other client may see: passwords, wherever requests are shown.

use std::fmt;

use resp::Request;

use crate::table::Hides;

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

/// Argument number `index` of a request as others may see it, of which its command hides so much.
pub(crate) fn shown<'a>(hides: Hides, request: &Request<'a>, index: usize) -> &'a [u8] {
    match hides {
        Hides::From(first) if index >= first => REDACTED,
        _ => request.argument(index),
    }
}
