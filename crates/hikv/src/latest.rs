//! The latest backup of a store: a directory in which each backup replaces the previous one.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 remove `PLACE.new` and `PLACE.old`, which an interrupted backup may have left | the last backup |
//! | 2 write and sync the backup as `PLACE.new` ([`Store::backup`]) | the last backup |
//! | 3 exchange `PLACE.new` and PLACE, or rename the first backup; sync the parent | the new backup |
//! | 4 remove the previous backup, now `PLACE.new` | the new backup |
//!
//! Some file systems cannot exchange two names in one step. There, PLACE is first renamed to `PLACE.old`, and a crash
//! may leave no PLACE. The next backup then begins by renaming `PLACE.new`, which is complete and newer than
//! `PLACE.old`.
//!
//! # Protected files
//! A directory is replaced or removed only if it is empty, or if all of this holds: it has the mark of a latest backup
//! of this very store, it contains no other files, and no process has it open for writing (`copy_mark`). It is removed
//! file by file, so a file that another program adds at the last moment stays. A place that is the store's directory,
//! above it, or within it under another name than `backup`, is refused earlier (`backup_place`).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pmem_os::names;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::copy_mark::{self, Mark, Purpose};
use crate::files_status::Files;
use crate::{BackupError, OpenError, Options, Store, backup_place, dir_lock};

/// The replaceable contents of a path.
#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    EmptyDir,
    Latest,
}

/// The place of a store's latest backup, and the names beside it.
pub(crate) struct LatestBackup {
    uuid: [u8; 16],
    place: PathBuf,
    new: PathBuf,
    old: PathBuf,
    unfinished: PathBuf,
}

impl LatestBackup {
    pub(crate) fn of(store: &Store, place: &Path) -> Result<LatestBackup, BackupError> {
        let [place, new, old, unfinished] = names_of(place)?;
        Ok(LatestBackup { uuid: store.uuid(), place, new, old, unfinished })
    }

    pub(crate) fn new_path(&self) -> &Path {
        &self.new
    }

    /// Checks that the names are suitable for a backup of the store with these files.
    pub(crate) fn check_place(&self, files: &Files) -> Result<(), BackupError> {
        self.names().iter().try_for_each(|name| backup_place::check(files, name))
    }

    /// Checks that each name is free or leads to a backup that may be replaced.
    pub(crate) fn check(&self) -> Result<(), BackupError> {
        self.names().iter().try_for_each(|name| self.found_at(name).map(drop))
    }

    fn names(&self) -> [&Path; 4] {
        [&self.place, &self.new, &self.old, &self.unfinished]
    }

    /// Finishes an interrupted backup, and carries out step 1.
    pub(crate) fn begin(&self) -> Result<(), BackupError> {
        self.finish_interrupted()?;
        self.check()?;
        for name in [&self.new, &self.old] {
            if self.found_at(name)? == Found::Latest {
                remove(name)?;
            }
        }
        Ok(())
    }

    /// Gives an interrupted backup its name, if that is free.
    fn finish_interrupted(&self) -> Result<(), BackupError> {
        if self.found_at(&self.place)? == Found::Nothing && self.found_at(&self.new)? == Found::Latest {
            rename(&self.new, &self.place)?;
            sync_parent(&self.place)?;
        }
        Ok(())
    }

    /// Carries out steps 3 and 4.
    pub(crate) fn put_in_place(&self) -> Result<(), BackupError> {
        let (place, new, old) = (&*self.place, &*self.new, &*self.old);
        if self.found_at(place)? != Found::Latest {
            // The system refuses to rename over a directory that is not empty.
            rename(new, place)?;
            return sync_parent(place);
        }
        // The lock keeps writers away until the directory is gone.
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

    /// Returns the contents of `path` if they may be replaced, otherwise an error.
    fn found_at(&self, path: &Path) -> Result<Found, BackupError> {
        let failed = |error| BackupError::from(OpenError::io(path, "examine")(error));
        let occupied = |why: &str| BackupError::Occupied { path: path.to_owned(), why: why.to_owned() };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(failed(error)),
            Ok(found) if !found.is_dir() => return Err(occupied("it is not a directory")),
            Ok(_) => {}
        }
        if fs::read_dir(path).map_err(failed)?.next().is_none() {
            return Ok(Found::EmptyDir);
        }
        if let Some(stranger) = copy_mark::foreign_entry(path).map_err(failed)? {
            return Err(occupied(&format!("it contains {}, which is not part of a backup", stranger.display())));
        }
        match Mark::read(path).map_err(failed)? {
            Some(Mark { purpose: Purpose::Latest, uuid }) if uuid == self.uuid => Ok(Found::Latest),
            Some(Mark { purpose: Purpose::Latest, .. }) => Err(occupied("it is a backup of another store")),
            Some(Mark { purpose: Purpose::Kept, .. }) => Err(occupied("it is a backup to be kept (Store::backup)")),
            None => Err(occupied(
                "it is an independent store, or a backup that was written to or made by an earlier version",
            )),
        }
    }
}

/// Returns the place, and the names next to it that a backup uses.
fn names_of(place: &Path) -> Result<[PathBuf; 4], BackupError> {
    let name = place
        .file_name()
        .ok_or_else(|| BackupError::Place { path: place.to_owned(), why: "its path does not end in a name" })?;
    // A slash at the end is left out: it would follow a symbolic link.
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
