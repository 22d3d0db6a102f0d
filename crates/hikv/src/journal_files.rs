//! The files of a journaled store: `store.hikv` is the journal's base, `journal.hikv` its log.
//!
//! # Steps of making one
//! 1. Both files are made under other names, formatted, and closed: the base is a whole, empty store.
//! 2. The log gets its name; the directory is synced.
//! 3. The base gets its name; the directory is synced. Only now there is a store.
//!
//! A crash before 3 leaves a log without a base, beside a base of the other name: the next making removes both. A log that
//! is alone was separated from its base by somebody, and is not removed.

use std::fs;
use std::path::Path;

use engine::{Engine, HiKv, HostDram, hikv::Parameters};
use journal::{Files, JournalError, JournalOptions, Journaled, OsFile, Which};
use pmem::Durability;
use pmem_os::{StoreLock, sync_dir};

use crate::files::{Opened, REGION_NAME, UNFINISHED_NAME, remove, start};
use crate::stats::Identity;
use crate::{OpenError, Options};

const LOG_NAME: &str = "journal.hikv";
const UNFINISHED_LOG_NAME: &str = "journal.hikv.new";

/// Whether the store in `dir` is journaled.
pub(crate) fn is_there(dir: &Path) -> Result<bool, OpenError> {
    let log = dir.join(LOG_NAME);
    log.try_exists().map_err(OpenError::io(&log, "examine"))
}

/// Removes what an interrupted making left.
pub(crate) fn remove_unfinished(dir: &Path) -> Result<(), OpenError> {
    if is_there(dir)? {
        if !dir.join(UNFINISHED_NAME).exists() {
            let why = std::io::Error::other("store.hikv, to which it belongs, is missing");
            return Err(OpenError::io(&dir.join(LOG_NAME), "use")(why));
        }
        remove(&dir.join(LOG_NAME))?;
    }
    remove(&dir.join(UNFINISHED_LOG_NAME))
}

/// Makes an empty store; see the module.
pub(crate) fn create(dir: &Path, parameters: &Parameters) -> Result<(), OpenError> {
    let (base, log) = (dir.join(UNFINISHED_NAME), dir.join(UNFINISHED_LOG_NAME));
    format(&base, &log, parameters).inspect_err(|_| {
        // They are in nobody's way; the next making removes them, too.
        let _ = (fs::remove_file(&base), fs::remove_file(&log));
    })?;
    for (from, to) in [(log, LOG_NAME), (base, REGION_NAME)] {
        let to = dir.join(to);
        fs::rename(&from, &to).map_err(OpenError::io(&to, "create"))?;
        sync_dir(dir).map_err(OpenError::io(dir, "sync"))?;
    }
    Ok(())
}

/// Step 1.
fn format(base: &Path, log: &Path, parameters: &Parameters) -> Result<(), OpenError> {
    let files = Files {
        base: OsFile::create(base).map_err(OpenError::io(base, "create"))?,
        log: OsFile::create(log).map_err(OpenError::io(log, "create"))?,
    };
    let options = JournalOptions { background: false, ..JournalOptions::default() };
    let medium = Journaled::create(files, parameters.region_bytes, parameters.uuid, options);
    let medium = medium.map_err(|error| journal_error([base, log], error))?;
    let store = HiKv::format(medium, HostDram, parameters).map_err(OpenError::unusable(base))?;
    // With an image: whoever opens it knows all its free space at once, as if it had just been formatted.
    store.close().map_err(|error| OpenError::io(base, "finish")(std::io::Error::other(error)))
}

/// Opens the store in `dir`.
pub(crate) fn open(dir: &Path, options: &Options, lock: Option<StoreLock>) -> Result<Opened, OpenError> {
    let medium = open_medium(dir, options)?;
    let journal_identity = medium.identity();
    let identity = Identity::of_journal(&medium);
    let opened = start(medium, identity, &dir.join(REGION_NAME), options, lock, None)?;
    if opened.identity.uuid() == journal_identity {
        Ok(opened)
    } else {
        let why = std::io::Error::other("it belongs to another store");
        Err(OpenError::io(&dir.join(LOG_NAME), "use")(why))
    }
}

/// Opens the journal of the store in `dir`.
pub(crate) fn open_medium(dir: &Path, options: &Options) -> Result<Journaled<OsFile>, OpenError> {
    let open = |path: &Path| OsFile::open(path, !options.read_only).map_err(OpenError::io(path, "open"));
    let (base_path, log_path) = (dir.join(REGION_NAME), dir.join(LOG_NAME));
    let files = Files { base: open(&base_path)?, log: open(&log_path)? };
    let name = files.base.medium_name().map_err(OpenError::io(&base_path, "examine"))?;
    let medium = Journaled::open(files, journal_options(options, name), &|_| {});
    medium.map_err(|error| journal_error([&base_path, &log_path], error))
}

/// The error, with the file that it is about.
fn journal_error([base, log]: [&Path; 2], error: JournalError) -> OpenError {
    let path = match error.which() {
        Which::Base => base,
        Which::Log => log,
    };
    match error {
        JournalError::Io { doing, source, .. } => OpenError::io(path, doing)(source),
        error => OpenError::Journal { path: path.to_owned(), error },
    }
}

fn journal_options(options: &Options, name: &'static str) -> JournalOptions {
    JournalOptions {
        reserve_bytes: options.region_bytes_max,
        writable: !options.read_only,
        huge_pages: options.huge_pages,
        level: match options.durability {
            _ if options.sync_on_request => Durability::Process,
            wanted => wanted.unwrap_or(Durability::Power),
        },
        sync_interval: options.sync_interval,
        log_bytes_max: options.log_bytes_max,
        name,
        background: true,
        ..JournalOptions::default()
    }
}
