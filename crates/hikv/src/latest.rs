//! The latest backup of a store: a directory in which the next backup replaces the one before.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 what an earlier one left as `PLACE.new` or `PLACE.old` is removed | the last backup |
//! | 2 the backup is written, synced, and called `PLACE.new` ([`Store::backup`]) | the same |
//! | 3 `PLACE.new` and PLACE change names, in one step where the file system can; the first backup is renamed; the parent synced | the new one |
//! | 4 the old one, now `PLACE.new`, is removed | the new one |
//!
//! Where the file system cannot exchange names, PLACE is renamed to `PLACE.old` first. A crash then may leave no PLACE: the
//! next backup begins by giving `PLACE.new` its name, which is whole, and newer than the other.
//!
//! # What is never touched
//! Only a directory is replaced or removed that is empty, or has the mark of a latest backup of this very store and nothing
//! beside a backup's files, and that no process has open for writing (`copy_mark`). It is removed file by file, so that what
//! another program puts there at the last moment stays. A place that is the store, or above, or within it under another name
//! than `backup`, is refused before (`backup_place`).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pmem_os::names;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::copy_mark::{self, Mark, Purpose};
use crate::{BackupError, BackupReport, OpenError, Options, Store, backup_place, dir_lock};

/// What a name stands for.
#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    EmptyDir,
    Latest,
}

impl Store {
    /// Whether [`Store::backup_latest`] may use the directory `place`, as far as its path says.
    ///
    /// # Errors
    /// [`BackupError::Place`] if that is the store, or above, or within it under another name than `backup`, or no directory;
    /// [`BackupError::Open`] if it cannot be examined.
    pub fn check_backup_place(&self, place: impl AsRef<Path>) -> Result<(), BackupError> {
        let place = place.as_ref();
        names_of(place)?.iter().try_for_each(|name| backup_place::check(self.files(), name))
    }

    /// Whether the latest backup at `place` may be replaced, or there is none.
    ///
    /// # Errors
    /// [`BackupError::Occupied`] if something else is there; [`BackupError::Open`] if it cannot be examined.
    pub fn check_latest_backup(&self, place: impl AsRef<Path>) -> Result<(), BackupError> {
        names_of(place.as_ref())?.iter().try_for_each(|name| self.found_at(name).map(drop))
    }

    /// Makes a backup in the directory `place`, as [`Store::backup`] does, in place of the one that this made there before:
    /// at every moment one of them is there, whole. Nothing else is ever replaced or removed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, place) = (dir.path().join("store"), dir.path().join("latest"));
    /// use hikv::Store;
    ///
    /// let store = Store::open(&path)?;
    /// for day in ["monday", "tuesday"] {
    ///     store.put("day", day)?;
    ///     store.backup_latest(&place)?;
    /// }
    /// assert_eq!(Store::open_read_only(&place)?.get("day")?.as_deref(), Some(&b"tuesday"[..]));
    ///
    /// std::fs::write(place.join("letter"), "dear")?;
    /// assert!(store.backup_latest(&place).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Store::check_backup_place`], [`Store::check_latest_backup`] and [`Store::backup`].
    pub fn backup_latest(&self, place: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        let place = place.as_ref();
        self.check_backup_place(place)?;
        let [_, new, old, _] = names_of(place)?;
        self.finish_interrupted(place, &new)?;
        self.check_latest_backup(place)?;
        for name in [&new, &old] {
            if self.found_at(name)? == Found::Latest {
                remove(name)?;
            }
        }
        let report = self.copy_to(&new, Purpose::Latest, |_| {})?;
        self.put_in_place(place, &new, &old)?;
        Ok(report)
    }

    /// Gives an interrupted backup its name, where nothing has it.
    fn finish_interrupted(&self, place: &Path, new: &Path) -> Result<(), BackupError> {
        if self.found_at(place)? == Found::Nothing && self.found_at(new)? == Found::Latest {
            rename(new, place)?;
            sync_parent(place)?;
        }
        Ok(())
    }

    /// Steps 3 and 4.
    fn put_in_place(&self, place: &Path, new: &Path, old: &Path) -> Result<(), BackupError> {
        if self.found_at(place)? != Found::Latest {
            // What is not empty by now the system refuses to rename over.
            rename(new, place)?;
            return sync_parent(place);
        }
        // Nobody begins to write to it, from now until it is gone.
        let _locks = dir_lock::lock_dir(place, &Options::new().read_only(true))?;
        let last = match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
            Ok(()) => new,
            Err(_) => {
                rename(place, old)?;
                rename(new, place)?;
                old
            }
        };
        sync_parent(place)?;
        remove(last)
    }

    /// What `path` stands for, if it is anything that may be replaced.
    fn found_at(&self, path: &Path) -> Result<Found, BackupError> {
        let failed = |error| BackupError::from(OpenError::io(path, "examine")(error));
        let occupied = |why: &str| BackupError::Occupied { path: path.to_owned(), why: why.to_owned() };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(failed(error)),
            Ok(found) if !found.is_dir() => return Err(occupied("it is no directory")),
            Ok(_) => {}
        }
        if fs::read_dir(path).map_err(failed)?.next().is_none() {
            return Ok(Found::EmptyDir);
        }
        if let Some(stranger) = copy_mark::stranger_in(path).map_err(failed)? {
            return Err(occupied(&format!("it holds {}, which is no part of a backup", stranger.display())));
        }
        match Mark::read(path).map_err(failed)? {
            Some(Mark { purpose: Purpose::Latest, uuid }) if uuid == self.uuid() => Ok(Found::Latest),
            Some(Mark { purpose: Purpose::Latest, .. }) => Err(occupied("it is a backup of another store")),
            Some(Mark { purpose: Purpose::Kept, .. }) => Err(occupied("it is a backup that somebody keeps")),
            None => {
                Err(occupied("it is a store of its own, or a backup that was written to or is of an earlier version"))
            }
        }
    }
}

/// The place, and the names beside it that a backup uses.
fn names_of(place: &Path) -> Result<[PathBuf; 4], BackupError> {
    let name = place.file_name().ok_or_else(|| BackupError::Place {
        path: place.to_owned(),
        why: "it has no name of its own, by which it could be replaced",
    })?;
    // Without a slash at its end, which would follow a symbolic link.
    let beside = |suffix: &str| place.with_file_name(OsString::from_iter([name, OsStr::new(suffix)]));
    Ok([beside(""), beside(".new"), beside(".old"), beside(".new.partial")])
}

fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    Ok(fs::rename(from, to).map_err(OpenError::io(to, "create"))?)
}

fn remove(dir: &Path) -> Result<(), BackupError> {
    Ok(copy_mark::remove(dir).map_err(OpenError::io(dir, "remove"))?)
}

fn sync_parent(path: &Path) -> Result<(), BackupError> {
    let parent = names::parent(path);
    Ok(names::sync_dir(parent).map_err(OpenError::io(parent, "sync"))?)
}
