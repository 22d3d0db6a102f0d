//! What is said of a key that is not there.

use std::path::Path;

use crate::formats::Escaped;

pub(super) fn not_found(store: &Path, key: &[u8]) -> String {
    format!("{}: there is no key '{}'", store.display(), Escaped(key))
}
