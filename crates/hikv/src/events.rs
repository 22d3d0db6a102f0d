//! Events for which no caller can receive an error. With the feature `tracing` they are recorded by that crate.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "without the feature, nothing is recorded"))]

use std::path::Path;

use engine::Error;
use pmem::Durability;

use crate::FilesStatus;

/// Records that the store at `path` failed to close when its last handle was dropped.
pub(crate) fn close_failed(path: &Path, error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::error!(store = %path.display(), %error, "closing the store failed");
}

/// Records that a write of the store at `path` panicked.
pub(crate) fn write_panicked(path: &Path) {
    #[cfg(feature = "tracing")]
    tracing::error!(store = %path.display(), "a write panicked: the store takes no further writes");
}

/// Records that the store in `file` was created for the durability `made_for`, and is open at the lower level `given`.
pub(crate) fn level_is_lower(file: &Path, made_for: Durability, given: Durability, why: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(store = %file.display(), %made_for, %given, why, "writes survive less than the store was made for");
}

/// Records that the files of the store at `path` were moved, removed or put back.
pub(crate) fn files_stand(path: &Path, now: FilesStatus) {
    #[cfg(feature = "tracing")]
    match now {
        FilesStatus::InPlace => tracing::info!(store = %path.display(), "the store's files are back in their place"),
        FilesStatus::Moved => {
            tracing::warn!(store = %path.display(), "the store's files were moved: its path does not lead to them");
        }
        FilesStatus::Removed => {
            tracing::error!(store = %path.display(), "the store's files were removed: writes are refused");
        }
    }
}
