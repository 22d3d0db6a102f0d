//! Durable changes of names of files and directories: each change is durable when it returns, or has not happened.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the name is changed | the old names or the new ones |
//! | 2 the directories that hold it are synced | the new ones |
//!
//! If step 2 fails, a rename is undone if possible, so that an error leaves the old state.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Makes the names in the directory `path` durable, both new and renamed ones.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Returns the directory that holds the name `path`.
#[must_use]
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Renames `from` to `to`, which must not exist.
///
/// # Errors
/// Of the kind `AlreadyExists` if `to` exists; the operating system's. Then `from` still has its name, unless the
/// directory could not be synced and undoing the rename also failed.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support this: then existence is checked first, and the rename is not one step.
        Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_ok() => return Err(Errno::EXIST.into()),
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to)?,
        renamed => renamed?,
    }
    sync_parents(from, to).inspect_err(|_| _ = fs::rename(to, from))
}

fn sync_parents(one: &Path, other: &Path) -> io::Result<()> {
    let (one, other) = (parent(one), parent(other));
    sync_dir(other)?;
    if one == other { Ok(()) } else { sync_dir(one) }
}

/// Creates the directory `path`, and the missing ones above it.
///
/// A parent directory that can be written but not read cannot be synced; then the file system is trusted to keep
/// the name, as it is for directories further up.
///
/// # Errors
/// The operating system's; some of the directories may exist then.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    match DirBuilder::new().create(path) {
        Err(error)
            if error.kind() == ErrorKind::NotFound && path.parent().is_some_and(|above| above != Path::new("")) =>
        {
            create_dirs(parent(path))?;
            match DirBuilder::new().create(path) {
                Err(_) if path.is_dir() => {}
                made => made?,
            }
        }
        Err(_) if path.is_dir() => {}
        made => made?,
    }
    // Also for an existing directory: its creator may have died before syncing.
    sync_parent(&fs::canonicalize(path)?)
}

/// Makes the name `path` durable. A directory that can be written but not read cannot be synced; then its file
/// system is trusted.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match sync_dir(parent(path)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_renamed_over_what_is_there() {
        let place = tempfile::tempdir().unwrap();
        let [one, other, free] = ["one", "other", "free"].map(|name| place.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        assert_eq!(rename_new(&one, &other).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(one.is_dir(), "an empty directory would be replaced");
        rename_new(&one, &free).unwrap();
        assert!(free.is_dir() && !one.exists());
        assert_eq!(rename_new(&one, &other).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn directories_are_made_where_they_are_missing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/c");
        create_dirs(&path).unwrap();
        create_dirs(&path).unwrap();
        assert!(path.is_dir());
        fs::write(place.path().join("file"), "").unwrap();
        for taken in ["file", "file/below"] {
            create_dirs(&place.path().join(taken)).unwrap_err();
        }
        assert_eq!(create_dirs(Path::new("")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
