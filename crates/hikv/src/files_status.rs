//! The place of an open store's files: whether the files still have names, and whether the store's path still leads there.
//!
//! An open file outlives its name. Writes to a file without a name look durable and are gone when the store is closed, so
//! the store refuses them. Three looks find that out:
//! 1. Before a sync of a journal's files returns, each has its link count compared (`journal::OsFile`): on a journal no write that
//!    waits for a sync is acknowledged after the files are gone.
//! 2. A writer looks before its write, at most once a second: the background has the next writer look (`engine::Worker`), and rests once a
//!    second went by without a write. So elsewhere, as on DAX and tmpfs, writes are acknowledged for about a second longer.
//! 3. [`Store::check_files`](crate::Store::check_files), `sync`, `close` and a backup look at once.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use pmem_os::{Closed, ForkGuard, StoreLock};
use rustix::fs::fstatvfs;

use crate::events;
use crate::files::{Locks, REGION_NAME, UNFINISHED_NAME};
use crate::journal_files::{LOG_NAME, UNFINISHED_LOG_NAME};

/// The place of a store's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FilesStatus {
    /// The store's path leads to them.
    InPlace,
    /// They are elsewhere: the directory or a file in it was renamed. Writes are as durable as before.
    Moved,
    /// A file of the store has no name left: the store takes no more writes.
    Removed,
}

impl FilesStatus {
    const ALL: [FilesStatus; 3] = [FilesStatus::InPlace, FilesStatus::Moved, FilesStatus::Removed];

    /// The name, as in stats.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FilesStatus::InPlace => "in place",
            FilesStatus::Moved => "moved",
            FilesStatus::Removed => "removed",
        }
    }
}

/// The open files, and the path that they were opened by.
#[derive(Debug)]
pub(crate) struct Files {
    /// From the root, so that a changed working directory means nothing.
    path: PathBuf,
    /// None of a device.
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

    /// Looks where the files are now, and closes the store to writes if they are gone. A change is logged.
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

    /// As of the last look.
    pub(crate) fn last_seen(&self) -> FilesStatus {
        FilesStatus::ALL[usize::from(self.seen.load(Ordering::Relaxed))]
    }

    /// What is free on the file system for a store that grows; none is known of a device.
    pub(crate) fn disk_free_bytes(&self) -> Option<u64> {
        let found = fstatvfs(self.dir.as_ref()?).ok()?;
        Some(found.f_bavail * found.f_frsize)
    }

    /// The path that the store was opened by, from the root.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself, whatever its path leads to now: a name by which this process reaches it. None of a device, which has
    /// the path alone.
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
        // Files have the last two names until the store is whole: a copy's (`partial`) as long as the copy is written.
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
