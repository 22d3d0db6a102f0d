//! Output files of commands: replaced atomically, so that an interrupted command leaves the previous file unchanged.
//! Files of a store are never overwritten.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pmem_os::WholeFile;

use crate::failure::Failure;

/// The names of a store's files that contain items.
const ITEM_FILES: [&str; 2] = ["store.hikv", "journal.hikv"];

/// A file that a command writes.
pub(crate) enum Output {
    /// A regular file, which is renamed to its path once it is complete.
    Whole(Box<WholeFile>),
    /// A pipe or a character device, which has no content to lose.
    Stream(File),
}

impl Output {
    /// Creates the output file for `path`.
    ///
    /// # Errors
    /// `path` is a file of the store at `store`, also by a link, or has the name of a store's file.
    pub(crate) fn create(path: &Path, store: &Path) -> Result<Output, Failure> {
        let found = fs::metadata(path);
        if let Ok(found) = &found {
            refuse_own(path, found, store)?;
        }
        refuse_names(path)?;
        let output = match found {
            Ok(found) if !is_replaceable(path, &found) => OpenOptions::new().write(true).open(path).map(Output::Stream),
            _ => WholeFile::begin(path).map(|whole| Output::Whole(Box::new(whole))),
        };
        output.map_err(Failure::at_path(path))
    }

    /// Completes the file and renames it to its path.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Output::Whole(whole) => whole.finish(),
            Output::Stream(_) => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Whole(whole) => whole.write(bytes),
            Output::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if `path` resolves to the regular file `found`: `/dev/stdout` may be a file without a name.
fn is_replaceable(path: &Path, found: &Metadata) -> bool {
    let named = fs::canonicalize(path).and_then(fs::metadata);
    found.is_file() && named.is_ok_and(|named| (named.dev(), named.ino()) == (found.dev(), found.ino()))
}

fn refuse_own(file: &Path, found: &Metadata, store: &Path) -> Result<(), Failure> {
    match is_of_store((found.dev(), found.ino()), store) {
        true => Err(Failure::at(file.display(), "this is a file of the store itself; name another file")),
        false => Ok(()),
    }
}

fn refuse_names(file: &Path) -> Result<(), Failure> {
    let led_to = fs::canonicalize(file).unwrap_or_default();
    match [file, &led_to].into_iter().any(|path| ITEM_FILES.iter().any(|name| path.ends_with(name))) {
        true => Err(Failure::at(
            file.display(),
            "a store's file may have this name, so it is not overwritten; name another file",
        )),
        false => Ok(()),
    }
}

/// Returns true if the file is `store` itself or one of the store's files in the directory `store`.
fn is_of_store(file: (u64, u64), store: &Path) -> bool {
    let is_it =
        |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_file() && (found.dev(), found.ino()) == file);
    let within = fs::read_dir(store).into_iter().flatten().flatten();
    let named = ["store.hikv", "journal.hikv", "lock"];
    let mut files = within.filter(|entry| named.iter().any(|name| entry.file_name() == *name));
    is_it(store) || files.any(|entry| is_it(&entry.path()))
}
