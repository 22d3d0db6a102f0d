//! A store that gets its name last, for backups, conversions and repairs. The steps are those of `backup`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use engine::Error;
use pmem_os::names;

use crate::BackupReport;
use crate::backup_error::BackupError;
use crate::copy_mark::{self, Mark};
use crate::file_names::{LOCK_NAME, LOG_NAME, Locks, REGION_NAME, UNFINISHED_LOG_NAME, UNFINISHED_NAME};
use crate::files;
use crate::opener::Opener;
use crate::{OpenError, Options, Store, dir_lock};

/// The suffix of an unfinished store's name.
const PARTIAL_SUFFIX: &str = ".partial";

/// A store that is being written under an unfinished name.
pub(crate) struct Copy {
    store: Store,
    out: PathBuf,
    partial: PathBuf,
    /// Held until the directory has its name.
    _locks: Locks,
}

impl Copy {
    /// Carries out steps 1 and 2, except for the items. `options` are those of the new store.
    pub(crate) fn begin(out: &Path, mark: Mark, options: &Options) -> Result<Copy, BackupError> {
        // A path without a last name, such as '/' or '..', already exists.
        let name = out.file_name().ok_or_else(|| BackupError::Exists { path: out.to_owned() })?;
        let partial = out.with_file_name(OsString::from_iter([name, OsStr::new(PARTIAL_SUFFIX)]));
        refuse_symlink(&partial)?;
        names::create_dirs(&partial).map_err(OpenError::io(&partial, "create"))?;
        let options = options.clone().ordered(false).tuning(|tuning| tuning.sync_on_request(true));
        let locks = dir_lock::lock_dir(&partial, &options)?;
        empty(&partial)?;
        mark.write(&partial).map_err(OpenError::io(&partial, "mark"))?;
        let make = |path: &Path, options: &Options| files::make_region(path, options, Locks::new());
        let store = Opener::new(&partial, &options).start(make)?;
        Ok(Copy { store, out: out.to_owned(), partial, _locks: locks })
    }

    /// Calls `write` to write the items, and carries out the remaining steps. If any of this fails, nothing is left.
    pub(crate) fn complete<E: From<BackupError>>(
        self,
        write: impl FnOnce(&Store) -> Result<u64, E>,
    ) -> Result<BackupReport, E> {
        let items = write(&self.store);
        let Copy { store, out, partial, _locks } = self;
        let closed = store.sync().and_then(|()| store.close());
        let finished = items.and_then(|items| Ok(finish(items, closed, &partial, &out)?));
        finished.inspect_err(|_| {
            // A remaining directory is harmless: it opens as no store, and the next backup removes it.
            let _ = copy_mark::remove(&partial);
        })
    }
}

/// Finishes the copy once the items are written.
fn finish(items: u64, closed: Result<(), Error>, partial: &Path, out: &Path) -> Result<BackupReport, BackupError> {
    closed.map_err(|error| BackupError::Write { path: partial.to_owned(), error })?;
    put_in_place(partial, out)?;
    // The length is final only now: the background grows a region until it is closed.
    let region = out.join(REGION_NAME);
    let region_bytes = fs::metadata(&region).map_err(OpenError::io(&region, "examine"))?.len();
    Ok(BackupReport { items, region_bytes })
}

/// Carries out steps 3 to 5.
fn put_in_place(partial: &Path, out: &Path) -> Result<(), BackupError> {
    files::finish_region(partial)?;
    names::rename_new(partial, out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { path: out.to_owned() },
        _ => OpenError::io(out, "create")(error).into(),
    })
}

/// Refuses a symbolic link: an interrupted backup leaves a directory.
fn refuse_symlink(partial: &Path) -> Result<(), BackupError> {
    let is_link = fs::symlink_metadata(partial).is_ok_and(|found| found.is_symlink());
    if is_link { Err(occupied(partial, "it is a symbolic link")) } else { Ok(()) }
}

/// Removes the files of an interrupted backup from its directory, and no others.
fn empty(partial: &Path) -> Result<(), BackupError> {
    if let Some(path) = copy_mark::foreign_entry(partial).map_err(OpenError::io(partial, "read"))? {
        return Err(occupied(&path, "it does not belong to an interrupted backup"));
    }
    let mark = Mark::read(partial).map_err(OpenError::io(partial, "read"))?;
    let region = partial.join(REGION_NAME);
    if mark.is_none() && region.try_exists().map_err(OpenError::io(&region, "examine"))? {
        return Err(occupied(partial, "it is a store, and has no mark of an interrupted backup"));
    }
    // The lock is held, but if a user removed the lock file, another backup may be at work here.
    for name in [REGION_NAME, UNFINISHED_NAME, LOG_NAME, UNFINISHED_LOG_NAME] {
        files::remove_left(&partial.join(name), partial)?;
    }
    Ok(copy_mark::remove_files(partial, &[LOCK_NAME]).map_err(OpenError::io(partial, "empty"))?)
}

fn occupied(path: &Path, why: &str) -> BackupError {
    BackupError::Occupied { path: path.to_owned(), why: why.to_owned() }
}
