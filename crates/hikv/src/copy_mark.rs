//! The mark of a copy: a small file in a backup that names the copied store.
//!
//! The mark distinguishes a backup from any other directory: nothing is removed or replaced without it. It is written
//! and synced before the copy's region gets its name, so every complete copy has it. Opening a copy for writing makes
//! it an independent store: the mark is removed before anything is written ([`forget_opened`]), but stays if opening
//! is refused. A store created where a copy was interrupted is no copy either: its mark is removed before its region
//! gets its name.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use pmem_os::names::sync_dir;
use uuid::Uuid;

use crate::file_names::{LOCK_NAME, LOG_NAME, REGION_NAME, UNFINISHED_LOG_NAME, UNFINISHED_NAME};
use crate::{OpenError, Options};

pub(crate) const MARK_NAME: &str = "copy-of";

/// In the order of their removal: the mark is last, so a remaining region still has it.
const NAMES: [&str; 6] = [REGION_NAME, UNFINISHED_NAME, LOG_NAME, UNFINISHED_LOG_NAME, LOCK_NAME, MARK_NAME];

/// Longer than any mark.
const MARK_BYTES_MAX: u64 = 256;

/// The purpose of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A user requested it and keeps it.
    Kept,
    /// The latest backup, which the next one replaces.
    Latest,
}

/// The purpose of a copy and the identity of the copied store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) purpose: Purpose,
    pub(crate) uuid: [u8; 16],
}

impl Mark {
    fn text(self) -> String {
        let what = match self.purpose {
            Purpose::Kept => "copy",
            Purpose::Latest => "latest copy",
        };
        format!("{what} of {}\n", Uuid::from_bytes(self.uuid))
    }

    fn parse(text: &str) -> Option<Mark> {
        let (what, uuid) = text.strip_suffix('\n')?.split_once(" of ")?;
        let purpose = match what {
            "copy" => Purpose::Kept,
            "latest copy" => Purpose::Latest,
            _ => return None,
        };
        Some(Mark { purpose, uuid: Uuid::try_parse(uuid).ok()?.into_bytes() })
    }

    /// Writes the mark into the directory, durably.
    pub(crate) fn write(self, dir: &Path) -> io::Result<()> {
        let mut file = File::create_new(dir.join(MARK_NAME))?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        sync_dir(dir)
    }

    /// Reads the directory's mark; `None` if it has none that is valid.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Mark>> {
        let path = dir.join(MARK_NAME);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() <= MARK_BYTES_MAX => {}
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => return Ok(None),
        }
        Ok(Mark::parse(&String::from_utf8_lossy(&fs::read(&path)?)))
    }
}

/// Removes the mark of the store in `dir` if it is opened for writing. The caller does so once only the store's
/// contents can still prevent the opening, and before anything changes them.
pub(crate) fn forget_opened(dir: &Path, options: &Options) -> Result<(), OpenError> {
    let forgotten = if options.read_only { Ok(()) } else { forget(dir) };
    forgotten.map_err(OpenError::io(dir, "remove the mark of a copy from"))
}

/// Removes the mark of the store in `dir`, which is about to be written to.
pub(crate) fn forget(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(MARK_NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome.and_then(|()| sync_dir(dir)),
    }
}

/// Returns an entry of the directory that is no file of a copy.
pub(crate) fn foreign_entry(dir: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_known = NAMES.iter().any(|name| entry.file_name() == *name);
        if !is_known || entry.file_type()?.is_dir() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Removes the files of a copy, by their names, except for `keeps`.
pub(crate) fn remove_files(dir: &Path, keeps: &[&str]) -> io::Result<()> {
    for name in NAMES.iter().filter(|name| !keeps.contains(name)) {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes a directory with a complete or incomplete copy. Any other file in it stays, and is an error.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    remove_files(dir, &[])?;
    fs::remove_dir(dir)
}
