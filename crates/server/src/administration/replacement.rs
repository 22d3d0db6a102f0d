//! Replacing a file whole: what has its name is the old text or the new one, whatever happens meanwhile.
//!
//! 1. The new text is written to a file beside it, which nobody else may read. A crash leaves that file, and the next
//!    replacement takes its place.
//! 2. It gets the mode and the owner of the old one.
//! 3. The file is synced, so that the name never leads to less than all of it.
//! 4. It is renamed. A crash leaves the old text or the new one.
//! 5. The directory is synced: the new text stays.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Puts `text` in the place of what `path` holds, which must be there. Where that is a link, the file that it leads to is
/// replaced, and the link stays.
///
/// # Errors
/// If one of the steps fails, among them that the owner cannot be kept; the old text is still there then.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = &fs::canonicalize(path)?;
    let old = fs::metadata(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.new"));
    let outcome = write(&fresh, &old, text).and_then(|()| fs::rename(&fresh, path));
    if outcome.is_err() {
        // What stays behind holds what the old file may be read for, and no more.
        let _ = fs::remove_file(&fresh);
    }
    outcome?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(".".as_ref()))?.sync_all()
}

fn write(fresh: &Path, old: &fs::Metadata, text: &[u8]) -> io::Result<()> {
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    file.write_all(text)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        fchown(&file, Some(old.uid()), Some(old.gid()))
            .map_err(|error| io::Error::new(error.kind(), format!("its owner cannot be kept: {error}")))?;
    }
    file.set_permissions(old.permissions())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_stays_and_leads_to_the_new_text() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (dir.path().join("link"), elsewhere.path().join("file"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_mode_stays_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        fs::write(&path, "old").expect("the file is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("the mode is set");
        fs::write(dir.path().join(".file.new"), "of a crash").expect("the file is written");
        replace(&path, b"new").expect("the file is replaced");
        assert_eq!(fs::read(&path).expect("the file is there"), b"new");
        assert_eq!(fs::metadata(&path).expect("the file is there").permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).expect("the directory is there").count(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let error = replace(&dir.path().join("file"), b"new").expect_err("there is no file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
