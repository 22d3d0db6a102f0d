//! Files that commands write.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::Failure;

/// Opens `file` for a new content, unless it is a file of the store at `store` by whatever name: that would destroy what it is
/// written from.
pub(crate) fn create(file: &Path, store: &Path) -> Result<File, Failure> {
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
