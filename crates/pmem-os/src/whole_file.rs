//! Atomic replacement of files: at every moment, the name leads to all of the old content or all of the new.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 `.NAME.new` is created next to NAME, and the content written to it | the old file, and `.NAME.new` |
//! | 2 the new file gets the mode of the old one | the same |
//! | 3 the new file is synced | the same |
//! | 4 the new file is renamed to NAME | the old content or the new one |
//! | 5 the directory is synced | the new content |
//!
//! The writer locks `.NAME.new` and gives it the owner of the old file. After a crash, the next writer of NAME
//! removes `.NAME.new`. A writer that stops before step 4, for any reason, also removes that file: an error or a
//! signal leaves only the old file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::{LockError, StoreLock, names};

/// A file that is being written. Dropping it before [`WholeFile::finish`] leaves the old file.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    /// The name until step 4.
    fresh: PathBuf,
    path: PathBuf,
    old: Option<Metadata>,
    lock: StoreLock,
    is_finished: bool,
}

impl WholeFile {
    /// Step 1, without the content. If `path` is a link, the file that it leads to is replaced.
    ///
    /// # Errors
    /// The operating system's, also if the directory accepts no new file or the owner of the old file cannot be
    /// kept. Of the kind `ResourceBusy` if another process is writing the same file.
    pub fn begin(path: &Path) -> io::Result<WholeFile> {
        let (path, old) = target(path)?;
        let name = path.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        let fresh = path.with_file_name(format!(".{}.new", name.to_string_lossy()));
        StoreLock::remove_unused(&fresh).map_err(of_lock)?;
        // Until step 2, only the owner may read the replacement of a file with limited access.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot create a new file in its directory: {error}"))
        })?;
        let lock = StoreLock::of_open(&file, &fresh, true).map_err(of_lock)?;
        let whole = WholeFile { file, fresh, path, old, lock, is_finished: false };
        // Check now, not after hours of writing.
        whole.keep_owner()?;
        Ok(whole)
    }

    /// Replaces the content of the file `path`, which must exist, by `bytes`.
    ///
    /// # Errors
    /// As for [`WholeFile::begin`] and [`WholeFile::finish`]; of the kind `NotFound` if there is no such file.
    pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::metadata(path)?;
        let mut whole = WholeFile::begin(path)?;
        whole.write_all(bytes)?;
        whole.finish()
    }

    /// Steps 2 to 5.
    ///
    /// # Errors
    /// If one of the steps fails. The old content is still there then, except after an error of step 5, which
    /// leaves the new one.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(old) = &self.old {
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_all()?;
        if !self.lock.is_of(&self.fresh)? {
            return Err(io::Error::other("another process replaced the new file while it was written"));
        }
        fs::rename(&self.fresh, &self.path)?;
        self.is_finished = true;
        names::sync_parent(&self.path)
    }

    fn keep_owner(&self) -> io::Result<()> {
        let Some(old) = &self.old else { return Ok(()) };
        let made = self.file.metadata()?;
        if (made.uid(), made.gid()) == (old.uid(), old.gid()) {
            return Ok(());
        }
        fchown(&self.file, Some(old.uid()), Some(old.gid()))
            .map_err(|error| io::Error::new(error.kind(), format!("cannot keep its owner: {error}")))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_finished && self.lock.is_of(&self.fresh).unwrap_or(false) {
            // The next writer removes a file that cannot be removed now.
            let _ = fs::remove_file(&self.fresh);
        }
    }
}

/// Returns the path to be replaced, behind all links, and its file, if there is one.
fn target(path: &Path) -> io::Result<(PathBuf, Option<Metadata>)> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok((path.to_owned(), None)),
        found => {
            found?;
            let path = fs::canonicalize(path)?;
            let old = fs::metadata(&path)?;
            Ok((path, Some(old)))
        }
    }
}

fn of_lock(error: LockError) -> io::Error {
    match error {
        LockError::Held { .. } => io::Error::new(ErrorKind::ResourceBusy, "another process is writing it"),
        LockError::Io { source, .. } => source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names_in(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn links_lead_to_the_new_content() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (dir.path().join("link"), elsewhere.path().join("file"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        WholeFile::replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names_in(dir.path()), ["link"]);
    }

    #[test]
    fn mode_stays_and_litter_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(dir.path().join(".file.new"), "of a crash").unwrap();
        WholeFile::replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names_in(dir.path()), ["file"]);
    }

    /// If the owner cannot be kept, that is an error before anything is written.
    #[test]
    fn owners_are_kept_from_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "old").unwrap();
        if std::os::unix::fs::chown(&path, Some(1), Some(1)).is_err() {
            return;
        }
        let whole = WholeFile::begin(&path).unwrap();
        assert_eq!(fs::metadata(dir.path().join(".file.new")).unwrap().uid(), 1);
        whole.finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().uid(), 1);
    }

    #[test]
    fn unfinished_files_leave_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut whole = WholeFile::begin(&path).unwrap();
        whole.write_all(b"ne").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(whole);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names_in(dir.path()), ["file"]);
        drop(WholeFile::begin(&dir.path().join("other")).unwrap());
        assert_eq!(names_in(dir.path()), ["file"], "no file was there, and there is none");
    }

    #[test]
    fn second_writers_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut first = WholeFile::begin(&path).unwrap();
        assert_eq!(WholeFile::begin(&path).unwrap_err().kind(), ErrorKind::ResourceBusy);
        first.write_all(b"first").unwrap();
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn missing_files_are_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let error = WholeFile::replace(&dir.path().join("file"), b"new").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(names_in(dir.path()).is_empty());
    }
}
