//! The message for a key that does not exist.

use std::path::Path;

use crate::formats::Escaped;

pub(super) fn not_found(store: &Path, key: &[u8]) -> String {
    format!("{}: key not found: '{}'", store.display(), Escaped(key))
}
