//! Files that commands write: whole, so that an interrupted command leaves the file that was there, and never over a file of a store.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pmem_os::WholeFile;

use crate::failure::Failure;

/// The names of a store's files that hold its items.
const ITEM_FILES: [&str; 2] = ["store.hikv", "journal.hikv"];

/// A file that a command writes.
pub(crate) enum Output {
    /// A regular file, which gets its name once it is whole.
    Whole(Box<WholeFile>),
    /// A pipe or a device, which has no content to lose.
    Stream(File),
}

impl Output {
    /// Begins the file `path`. Files of the store at `store` are refused, by whatever name, and so are the names of a store's files.
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

    /// Ends the file, whose content was written.
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

/// Whether a name leads to the regular file `found`: `/dev/stdout` may lead to one that has no name left.
fn is_replaceable(path: &Path, found: &Metadata) -> bool {
    let named = fs::canonicalize(path).and_then(fs::metadata);
    found.is_file() && named.is_ok_and(|named| (named.dev(), named.ino()) == (found.dev(), found.ino()))
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
