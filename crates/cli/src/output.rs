//! Files that commands write. What was in them is gone: so they are no file of a store.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::Failure;

/// The names of a store's files that hold its items.
const ITEM_FILES: [&str; 2] = ["store.hikv", "journal.hikv"];

/// Opens `file` for a new content, unless it is called as a store's files are, whatever link leads to it, or is a file of the
/// store at `store` by any other name: that would destroy what it is written from.
pub(crate) fn create(file: &Path, store: &Path) -> Result<File, Failure> {
    let led_to = fs::canonicalize(file).unwrap_or_default();
    if [file, &led_to].into_iter().any(|path| ITEM_FILES.iter().any(|name| path.ends_with(name))) {
        return Err(Failure::at(file.display(), "this is the name of a store's file, which is not overwritten"));
    }
    let out = OpenOptions::new().write(true).create(true).truncate(false).open(file);
    let out = out.map_err(Failure::at_path(file))?;
    let found = out.metadata().map_err(Failure::at_path(file))?;
    if is_of_store((found.dev(), found.ino()), store) {
        return Err(Failure::at(file.display(), "this is a file of the store itself"));
    }
    if found.is_file() {
        out.set_len(0).map_err(Failure::at_path(file))?;
    }
    Ok(out)
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
