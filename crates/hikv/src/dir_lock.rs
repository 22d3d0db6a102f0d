//! The lock file of a store's directory.

use std::fs;
use std::io::ErrorKind::{self, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pmem_os::StoreLock;

use crate::file_names::{LOCK_NAME, Locks};
use crate::files::{Opened, exists};
use crate::{OpenError, Options};

/// Opens the store in `dir`. If this fails, a lock file that the opening created is removed.
pub(crate) fn or_none(dir: &Path, open: impl FnOnce() -> Result<Opened, OpenError>) -> Result<Opened, OpenError> {
    let file = dir.join(LOCK_NAME);
    let was_there = exists(&file)?;
    open().inspect_err(|_| {
        if !was_there {
            // A lock file that another process holds by now stays.
            let _ = StoreLock::remove_unused(&file);
        }
    })
}

/// Locks the directory `dir`. A copied store may lack the lock file; readers create it as well, if they can.
pub(crate) fn lock_dir(dir: &Path, options: &Options) -> Result<Locks, OpenError> {
    let file = dir.join(LOCK_NAME);
    if options.read_only && !exists(&file)? {
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
            Err(error)
                if matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied | StorageFull | QuotaExceeded) =>
            {
                return Ok(Locks::new());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => drop(made.map_err(OpenError::io(&file, "create"))?),
        }
    }
    let lock = if options.read_only { StoreLock::shared(&file) } else { StoreLock::exclusive(&file) };
    Ok(vec![lock.map_err(OpenError::locked(dir))?])
}
