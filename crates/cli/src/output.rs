//! Files that commands write. What was in them is gone: so they are no file of a store.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::Failure;

/// The names of a store's files that hold its items.
const ITEM_FILES: [&str; 2] = ["store.hikv", "journal.hikv"];

/// Opens `file` for a new content, unless that is a file of the store at `store` by whatever name, which would destroy what the
/// content comes from, or is called as a store's files are, whatever link leads to it.
pub(crate) fn create(file: &Path, store: &Path) -> Result<File, Failure> {
    if let Ok(found) = fs::metadata(file) {
        refuse_own(file, &found, store)?;
    }
    refuse_names(file)?;
    let out = OpenOptions::new().write(true).create(true).truncate(false).open(file);
    let out = out.map_err(Failure::at_path(file))?;
    let found = out.metadata().map_err(Failure::at_path(file))?;
    // Again, of what was opened: the name may have come to mean something else.
    refuse_own(file, &found, store)?;
    if found.is_file() {
        out.set_len(0).map_err(Failure::at_path(file))?;
    }
    Ok(out)
}

fn refuse_own(file: &Path, found: &Metadata, store: &Path) -> Result<(), Failure> {
    match is_of_store((found.dev(), found.ino()), store) {
        true => Err(Failure::at(file.display(), "this is a file of the store itself")),
        false => Ok(()),
    }
}

fn refuse_names(file: &Path) -> Result<(), Failure> {
    let led_to = fs::canonicalize(file).unwrap_or_default();
    match [file, &led_to].into_iter().any(|path| ITEM_FILES.iter().any(|name| path.ends_with(name))) {
        true => Err(Failure::at(file.display(), "this is the name of a store's file, which is not overwritten")),
        false => Ok(()),
    }
}

/// Whether a file is the device `store`, or lies in the directory `store`.
fn is_of_store(file: (u64, u64), store: &Path) -> bool {
    let is_it =
        |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_file() && (found.dev(), found.ino()) == file);
    let within = fs::read_dir(store).into_iter().flatten().flatten();
    let named = ["store.hikv", "journal.hikv", "lock"];
    let mut files = within.filter(|entry| named.iter().any(|name| entry.file_name() == *name));
    is_it(store) || files.any(|entry| is_it(&entry.path()))
}

/// Makes a file durable that was written; what is no regular file has nothing to be made so.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
}
