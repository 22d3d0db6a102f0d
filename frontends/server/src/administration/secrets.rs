//! Hides secrets of requests, such as passwords, wherever requests are shown.

use std::fmt;

use resp::Request;

use command_table::Hides;

/// Shown in place of a secret, as in Redis.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// A password, which is hidden in debug output.
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

/// Returns argument number `index` as other clients may see it, given which arguments the command hides.
pub(crate) fn shown<'a>(hides: Hides, request: &Request<'a>, index: usize) -> &'a [u8] {
    match hides {
        Hides::From(first) if index >= first => REDACTED,
        _ => request.argument(index),
    }
}
