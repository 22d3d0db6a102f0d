//! The place of an open store's files: whether they still have names, and whether the store's path still leads to
//! them.
//!
//! An open file outlives its name. Writes to a file without a name seem durable but are lost when the store is closed,
//! so the store refuses them. Three checks detect missing files:
//! 1. A sync of a journal's log compares the link count and length of both files before it returns
//!    (`journal::OsFile`). So on a journal, no write that waits for a sync is acknowledged after a file is gone or cut.
//! 2. A writer checks before its write, at most once a second: the background asks the next writer to check
//!    (`engine::Worker`), and rests after a second without a write. So on DAX and tmpfs, writes are acknowledged for
//!    about a second longer.
//! 3. [`Store::check_files`](crate::Store::check_files), `sync`, `close` and a backup check immediately.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use pmem_os::{Closed, ForkGuard, StoreLock};
use rustix::fs::fstatvfs;

use crate::events;
use crate::file_names::{LOG_NAME, Locks, REGION_NAME, UNFINISHED_LOG_NAME, UNFINISHED_NAME};

/// The place of a store's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FilesStatus {
    /// The store's path leads to them.
    InPlace,
    /// The directory or a file in it was renamed. Writes are as durable as before.
    Moved,
    /// A file of the store has no name any more: writes are refused.
    Removed,
}

impl FilesStatus {
    const ALL: [FilesStatus; 3] = [FilesStatus::InPlace, FilesStatus::Moved, FilesStatus::Removed];

    /// Returns the name in stats.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FilesStatus::InPlace => "in place",
            FilesStatus::Moved => "moved",
            FilesStatus::Removed => "removed",
        }
    }
}

/// The open files, and the path by which they were opened.
#[derive(Debug)]
pub(crate) struct Files {
    /// An absolute path, unaffected by changes of the working directory.
    path: PathBuf,
    /// The open directory; `None` for a device.
    dir: Option<File>,
    guard: ForkGuard,
    seen: AtomicU8,
    locks: Locks,
}

impl Files {
    pub(crate) fn new(path: &Path, guard: &ForkGuard, locks: Locks) -> io::Result<Files> {
        let dir = if fs::metadata(path)?.is_dir() { Some(File::open(path)?) } else { None };
        let seen = AtomicU8::new(FilesStatus::InPlace as u8);
        Ok(Files { path: path::absolute(path)?, dir, guard: guard.clone(), seen, locks })
    }

    /// Checks where the files are, and closes the store to writes if they are gone. Logs a change.
    pub(crate) fn check(&self) -> FilesStatus {
        if !self.guard.in_owner() {
            return self.last_seen();
        }
        let (before, now) = (self.last_seen(), self.status());
        if now == FilesStatus::Removed {
            self.guard.close_to_writes(Closed::Removed);
        }
        if self.seen.swap(now as u8, Ordering::Relaxed) != before as u8 || now == before {
            return now;
        }
        events::files_stand(&self.path, now);
        now
    }

    /// Returns the result of the last check.
    pub(crate) fn last_seen(&self) -> FilesStatus {
        FilesStatus::ALL[usize::from(self.seen.load(Ordering::Relaxed))]
    }

    /// Returns the free bytes of the file system, or `None` for a device.
    pub(crate) fn disk_free_bytes(&self) -> Option<u64> {
        let found = fstatvfs(self.dir.as_ref()?).ok()?;
        Some(found.f_bavail * found.f_frsize)
    }

    /// Returns the absolute path by which the store was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path by which this process reaches the open directory, wherever that is now, or `None` for a device.
    pub(crate) fn dir_itself(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())))
    }

    fn status(&self) -> FilesStatus {
        let Some(dir) = &self.dir else { return FilesStatus::InPlace };
        if self.locks.iter().any(|lock| lock.is_unlinked()) {
            return FilesStatus::Removed;
        }
        let is_elsewhere = |found: io::Result<bool>| match found {
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            Ok(is_ours) => !is_ours,
        };
        // Files have the last two names until the store is complete, which for a copy (`partial`) takes as long as
        // copying.
        let names = [REGION_NAME, LOG_NAME, UNFINISHED_NAME, UNFINISHED_LOG_NAME].map(|name| self.path.join(name));
        let is_astray =
            |lock: &StoreLock| lock.holds_bytes() && names.iter().all(|name| is_elsewhere(lock.is_of(name)));
        let is_dir_elsewhere = is_elsewhere(is_same(dir, &self.path));
        if is_dir_elsewhere || self.locks.iter().any(is_astray) { FilesStatus::Moved } else { FilesStatus::InPlace }
    }
}

fn is_same(dir: &File, path: &Path) -> io::Result<bool> {
    let (open, named): (Metadata, Metadata) = (dir.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}
