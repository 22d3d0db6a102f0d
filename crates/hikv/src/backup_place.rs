//! Checks the place of a backup that replaces earlier ones. It must not be the store's directory, a directory above
//! it, or a path within it, except for one name.
//!
//! The store's directory is the open one, not the path by which it was opened. If the directory was moved, that path
//! may be missing or lead to another store, and no backup goes below it. No backup goes into the directory of another
//! store.
//!
//! One directory has many paths: symbolic links, bind mounts, `..`, working directories, file systems that ignore
//! case. So directories are compared by device and inode after the system has resolved their existing part. The part
//! that does not exist yet must consist of plain names.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf, absolute};

use pmem_os::names;

use crate::file_names::REGION_NAME;
use crate::files_status::{Files, FilesStatus};
use crate::{BackupError, OpenError};

/// The name of a backup within the store's directory; unfinished backups have names that begin with it.
const NAME_WITHIN: &str = "backup";

/// The identity of a directory, independent of its path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> io::Result<Identity> {
        let found = fs::metadata(path)?;
        Ok(Identity { device: found.dev(), inode: found.ino() })
    }
}

/// Returns an error if the place is unsuitable for a backup of the store.
pub(crate) fn check(store: &Files, place: &Path) -> Result<(), BackupError> {
    let refused = |why| BackupError::Place { path: place.to_owned(), why };
    let failed = |error| BackupError::from(OpenError::io(place, "examine")(error));
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_symlink() => return Err(refused("it is a symbolic link; name its target")),
        Ok(found) if !found.is_dir() => return Err(refused("it is not a directory")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let Some(parent) = resolved(names::parent(place)).map_err(failed)? else {
        return Err(refused("its path has '..' after a missing directory"));
    };
    let is_elsewhere = store.check() != FilesStatus::InPlace;
    if is_elsewhere && absolute(place).map_err(failed)?.starts_with(store.path()) {
        return Err(refused(
            "the store's directory was moved or removed, and this path is missing or belongs to another one",
        ));
    }
    let above_store = above_store(store).map_err(failed)?;
    match Identity::of(place) {
        Ok(identity) if above_store.first() == Some(&identity) => return Err(refused("it is the store's directory")),
        Ok(identity) if above_store.contains(&identity) => return Err(refused("it contains the store")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let above_place = above(&parent).map_err(failed)?;
    if is_in_other_store(&parent, &above_store).map_err(failed)? {
        return Err(refused("it is in the directory of another store"));
    }
    let depth = above_place.iter().position(|identity| above_store.first() == Some(identity));
    // A missing parent is not among the directories above.
    let is_directly_within = depth == Some(0) && parent.exists();
    match depth {
        None => Ok(()),
        Some(_) if is_directly_within && may_be_within(place) => Ok(()),
        Some(_) => Err(refused("within the store's directory it must be called 'backup'")),
    }
}

/// Returns the store's directory and all directories above it, innermost first; only the directory itself if it was
/// removed.
fn above_store(store: &Files) -> io::Result<Vec<Identity>> {
    let Some(itself) = store.dir_itself() else { return above(&fs::canonicalize(store.path())?) };
    let identity = Identity::of(&itself)?;
    match fs::canonicalize(&itself) {
        Ok(path) => above(&path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![identity]),
        Err(error) => Err(error),
    }
}

/// Returns true if the directory, or one above it, holds a store other than the first of `above_store`.
fn is_in_other_store(dir: &Path, above_store: &[Identity]) -> io::Result<bool> {
    for above in dir.ancestors().filter(|above| above.join(REGION_NAME).symlink_metadata().is_ok()) {
        if Some(&Identity::of(above)?) != above_store.first() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn may_be_within(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default();
    ["", ".new", ".old", ".new.partial"].iter().any(|suffix| name == &*format!("{NAME_WITHIN}{suffix}"))
}

/// Resolves the existing part of the path. Returns `None` if the remainder has other components than plain names.
fn resolved(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = absolute(path)?;
    for existing in path.ancestors() {
        match fs::canonicalize(existing) {
            Ok(canonical) => {
                let rest = path.strip_prefix(existing).expect("it is an ancestor");
                let is_plain = rest.components().all(|component| matches!(component, Component::Normal(_)));
                return Ok(is_plain.then(|| canonical.join(rest)));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Returns the existing part of the path and all directories above it, innermost first.
fn above(path: &Path) -> io::Result<Vec<Identity>> {
    let identities = path.ancestors().map(Identity::of);
    identities.filter(|found| !matches!(found, Err(error) if error.kind() == ErrorKind::NotFound)).collect()
}
