//! Where a backup that replaces an earlier one may not be: at the store, above or within it, but for one name.
//!
//! Paths have many spellings: symbolic links, bind mounts, `..`, a working directory, letters that a file system takes for
//! equal. So directories are compared by device and inode, after the system has resolved what is there; what is not there
//! yet has plain names alone.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use pmem_os::names;

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

/// Refuses the place for the store at `store`, if it is wrong.
pub(crate) fn check(store: &Path, place: &Path) -> Result<(), BackupError> {
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
    let above_store = above(&fs::canonicalize(store).map_err(failed)?).map_err(failed)?;
    match Identity::of(place) {
        Ok(identity) if above_store.first() == Some(&identity) => return Err(refused("it is the store")),
        Ok(identity) if above_store.contains(&identity) => return Err(refused("the store is in it")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let above_place = above(&parent).map_err(failed)?;
    let depth = above_place.iter().position(|identity| above_store.first() == Some(identity));
    // What is not there is not among those above.
    let is_directly_within = depth == Some(0) && parent.exists();
    match depth {
        None => Ok(()),
        Some(_) if is_directly_within && may_be_within(place) => Ok(()),
        Some(_) => Err(refused("within a store it must be 'backup'")),
    }
}

fn may_be_within(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default();
    ["", ".new", ".old", ".new.partial"].iter().any(|suffix| name == &*format!("{NAME_WITHIN}{suffix}"))
}

/// The path with what is there of it resolved; none if the rest is not of plain names.
fn resolved(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = std::path::absolute(path)?;
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
