//! The mark of a copy: a small file in a backup that says of which store it is.
//!
//! The mark is what tells a backup of ours from any other directory: nothing is removed or replaced without it. The mark is
//! written and synced before the copy's region gets the name, so a whole copy has it; opening the copy for writing makes the copy
//! a store of its own, and the mark goes before anything is written ([`forget_opened`]). An opening that is refused leaves it. A store that
//! is made where a copy was interrupted is no copy either, and the mark goes before its region gets the name.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use pmem_os::names::sync_dir;
use uuid::Uuid;

use crate::files::{LOCK_NAME, REGION_NAME, UNFINISHED_NAME};
use crate::journal_files::{LOG_NAME, UNFINISHED_LOG_NAME};
use crate::{OpenError, Options};

pub(crate) const MARK_NAME: &str = "copy-of";

/// In the order in which they are removed: a region that is left has its mark.
const NAMES: [&str; 6] = [REGION_NAME, UNFINISHED_NAME, LOG_NAME, UNFINISHED_LOG_NAME, LOCK_NAME, MARK_NAME];

/// Longer than any mark.
const MARK_BYTES_MAX: u64 = 256;

/// Why the copy was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A user asked for it, and keeps it.
    Kept,
    /// It is the latest, until the next takes its place.
    Latest,
}

/// Whose copy it is, and why.
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

    /// Marks the directory, durably.
    pub(crate) fn write(self, dir: &Path) -> io::Result<()> {
        let mut file = File::create_new(dir.join(MARK_NAME))?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        sync_dir(dir)
    }

    /// The mark of the directory, if it has one that can be understood.
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

/// The store in `dir` is no copy any more if it is opened for writing: once nothing but its contents can still refuse that, and
/// before anything changes them.
pub(crate) fn forget_opened(dir: &Path, options: &Options) -> Result<(), OpenError> {
    let forgotten = if options.read_only { Ok(()) } else { forget(dir) };
    forgotten.map_err(OpenError::io(dir, "take the mark of a copy from"))
}

/// Takes the mark from the store in `dir`, which is about to be written to.
pub(crate) fn forget(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(MARK_NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome.and_then(|()| sync_dir(dir)),
    }
}

/// Something in the directory that is no file of a copy.
pub(crate) fn stranger_in(dir: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_known = NAMES.iter().any(|name| entry.file_name() == *name);
        if !is_known || entry.file_type()?.is_dir() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Removes the files of a copy, by their names; `keeps` is left.
pub(crate) fn remove_files(dir: &Path, keeps: &[&str]) -> io::Result<()> {
    for name in NAMES.iter().filter(|name| !keeps.contains(name)) {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes a directory with a copy, whole or not. Anything else in it stays, and the directory with it: then it is an error.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    remove_files(dir, &[])?;
    fs::remove_dir(dir)
}
