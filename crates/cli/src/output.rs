//! Files that a command writes. What was in them is gone: so they are no file of a store.

use std::fs::{self, File};
use std::path::Path;

use crate::failure::Failure;

/// The names of a store's files that hold its items.
const STORE_NAMES: [&str; 2] = ["store.hikv", "journal.hikv"];

/// Makes the file, or empties it; not one that is called as a store's are, whatever link leads to it.
pub(crate) fn create(file: &Path) -> Result<File, Failure> {
    let led_to = fs::canonicalize(file).unwrap_or_default();
    if [file, &led_to].into_iter().any(|path| STORE_NAMES.iter().any(|name| path.ends_with(name))) {
        return Err(Failure::at(file.display(), "this is the name of a store's file, which is not overwritten"));
    }
    File::create(file).map_err(Failure::at_path(file))
}
