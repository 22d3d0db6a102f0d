//! Where a backup that replaces an earlier one may not be: at the store, above or within it, but for one name.
//!
//! The store is the open directory, not the path that it was opened by: where the directory was moved, that path may be missing or
//! lead to another store. No backup goes below it then, and none ever goes into the directory of another store.
//!
//! Paths have many spellings: symbolic links, bind mounts, `..`, a working directory, letters that a file system takes for
//! equal. So directories are compared by device and inode, after the system has resolved what is there; what is not there
//! yet has plain names alone.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf, absolute};

use pmem_os::names;

use crate::files::REGION_NAME;
use crate::files_status::{Files, FilesStatus};
use crate::{BackupError, OpenError};

/// What a backup within the store's directory may be called, and what the names of one that is being made begin with.
const NAME_WITHIN: &str = "backup";

/// A directory, however it is called.
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

/// Refuses the place for a store, if it is wrong.
pub(crate) fn check(store: &Files, place: &Path) -> Result<(), BackupError> {
    let refused = |why| BackupError::Place { path: place.to_owned(), why };
    let failed = |error| BackupError::from(OpenError::io(place, "examine")(error));
    match fs::symlink_metadata(place) {
        Ok(found) if found.is_symlink() => return Err(refused("it is a symbolic link; name what it points to")),
        Ok(found) if !found.is_dir() => return Err(refused("it is no directory")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let Some(parent) = resolved(names::parent(place)).map_err(failed)? else {
        return Err(refused("its path has '..' behind what is not there"));
    };
    let is_elsewhere = store.check() != FilesStatus::InPlace;
    if is_elsewhere && absolute(place).map_err(failed)?.starts_with(store.path()) {
        return Err(refused(
            "the store's directory was moved or removed, and this path leads to another one, or nowhere",
        ));
    }
    let above_store = above_store(store).map_err(failed)?;
    match Identity::of(place) {
        Ok(identity) if above_store.first() == Some(&identity) => return Err(refused("it is the store")),
        Ok(identity) if above_store.contains(&identity) => return Err(refused("the store is in it")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let above_place = above(&parent).map_err(failed)?;
    if is_in_other_store(&parent, &above_store).map_err(failed)? {
        return Err(refused("it is in the directory of another store"));
    }
    let depth = above_place.iter().position(|identity| above_store.first() == Some(identity));
    // What is not there is not among those above.
    let is_directly_within = depth == Some(0) && parent.exists();
    match depth {
        None => Ok(()),
        Some(_) if is_directly_within && may_be_within(place) => Ok(()),
        Some(_) => Err(refused("within a store it must be 'backup'")),
    }
}

/// The directory of the store and all that it is in, from the inside out. Of one that was removed the directory alone is left.
fn above_store(store: &Files) -> io::Result<Vec<Identity>> {
    let Some(itself) = store.dir_itself() else { return above(&fs::canonicalize(store.path())?) };
    let identity = Identity::of(&itself)?;
    match fs::canonicalize(&itself) {
        Ok(path) => above(&path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![identity]),
        Err(error) => Err(error),
    }
}

/// Whether a directory, or one that it is in, holds a store other than the first of `above_store`.
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

/// The path with what is there of it resolved; none if the rest is not of plain names.
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

/// The path, as far as it is there, and all that it is in, from the inside out.
fn above(path: &Path) -> io::Result<Vec<Identity>> {
    let identities = path.ancestors().map(Identity::of);
    identities.filter(|found| !matches!(found, Err(error) if error.kind() == ErrorKind::NotFound)).collect()
}
