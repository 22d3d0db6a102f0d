//! Events for which no caller can get an error. They go to `tracing`, with the feature of that name.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "without the feature, nothing is recorded"))]

use std::path::Path;

use engine::Error;
use pmem::Durability;

use crate::FilesStatus;

/// The store at `path` failed to close when its last handle was dropped.
pub(crate) fn close_failed(path: &Path, error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::error!(store = %path.display(), %error, "not closed as it should be");
}

/// A write of the store at `path` panicked.
pub(crate) fn write_panicked(path: &Path) {
    #[cfg(feature = "tracing")]
    tracing::error!(store = %path.display(), "a write panicked: the store takes no further writes");
}

/// The store in `file` was made for the level `made_for`, and is open at the lower level `given`.
pub(crate) fn level_is_lower(file: &Path, made_for: Durability, given: Durability, why: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(store = %file.display(), %made_for, %given, why, "writes survive less than the store was made for");
}

/// The files of the store at `path` were found in another place than before.
pub(crate) fn files_stand(path: &Path, now: FilesStatus) {
    #[cfg(feature = "tracing")]
    match now {
        FilesStatus::InPlace => tracing::info!(store = %path.display(), "the store's files are back in their place"),
        FilesStatus::Moved => {
            tracing::warn!(store = %path.display(), "the store's files were moved: its path does not lead to them");
        }
        FilesStatus::Removed => {
            tracing::error!(store = %path.display(), "the store's files were removed: it takes no more writes");
        }
    }
}
