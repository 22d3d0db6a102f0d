//! The files of a journaled store: `store.hikv` is the journal's base, `journal.hikv` its log.
//!
//! # Steps of creating one
//! 1. Both files are created under other names, formatted, and closed. The base is a complete, empty store.
//! 2. The log gets its name; the directory is synced.
//! 3. The base gets its name; the directory is synced. Only now the store exists.
//!
//! A crash before step 3 leaves a log without a base, next to a base with the unfinished name. The next creation
//! removes both. A log without any base was separated from it by a user, and is not removed.

use std::path::{Path, PathBuf};
use std::{fs, io};

use heap::Parameters;
use journal::{Acknowledger, Files, JournalError, JournalOptions, Journaled, OsFile, Which};
use pmem::Durability;
use pmem_os::{StoreLock, names};
use uuid::Uuid;

use crate::file_names::{LOG_NAME, Locks, REGION_NAME, UNFINISHED_LOG_NAME, UNFINISHED_NAME};
use crate::files::{Begin, Opened, exists, remove_left, start, sync_new};
use crate::opening::Progress;
use crate::options::Addresses;
use crate::stats::Identity;
use crate::{OpenError, OpenProgress, Options, copy_mark, engines, memory};

/// The first length of a region on a disk: the default engine with one item, plus two units of 64 KiB. Unlike a region
/// on persistent memory, it has no huge page to fill
/// (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
const FIRST_REGION_BYTES: u64 = 24 << 16;

/// The names of a journaled store's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Naming {
    /// The names of a complete store.
    Store,
    /// The names of a store that is being created.
    Unfinished,
}

impl Naming {
    /// Returns the paths of base and log.
    fn files(self, dir: &Path) -> [PathBuf; 2] {
        match self {
            Naming::Store => [REGION_NAME, LOG_NAME],
            Naming::Unfinished => [UNFINISHED_NAME, UNFINISHED_LOG_NAME],
        }
        .map(|name| dir.join(name))
    }
}

/// Returns true if the store in `dir` is journaled.
pub(crate) fn is_there(dir: &Path) -> Result<bool, OpenError> {
    exists(&dir.join(LOG_NAME))
}

/// Removes the log that an interrupted creation has left.
pub(crate) fn remove_unfinished(dir: &Path) -> Result<(), OpenError> {
    let (log, [unfinished, unfinished_log]) = (dir.join(LOG_NAME), Naming::Unfinished.files(dir));
    if exists(&log)? {
        if !exists(&unfinished)? {
            let why = io::Error::other("the store.hikv to which it belongs is missing");
            return Err(OpenError::io(&log, "use")(why));
        }
        remove_left(&log, dir)?;
    }
    remove_left(&unfinished_log, dir)
}

/// Step 1: creates an empty store under unfinished names.
pub(crate) fn make(dir: &Path, options: &Options, parameters: &Parameters) -> Result<(), OpenError> {
    let [base, log] = Naming::Unfinished.files(dir);
    let parameters = &Parameters { region_bytes: FIRST_REGION_BYTES, ..*parameters };
    format(dir, [&base, &log], options, parameters).inspect_err(|_| {
        // Remaining files are harmless: the next creation removes them.
        let _ = (fs::remove_file(&base), fs::remove_file(&log));
    })
}

fn format(dir: &Path, [base, log]: [&Path; 2], options: &Options, parameters: &Parameters) -> Result<(), OpenError> {
    let create = |path: &Path| OsFile::create(path).map_err(OpenError::io(path, "create"));
    let files = Files { base: create(base)?, log: create(log)? };
    let _locks = lock(&files, dir, [base, log])?;
    let log_options =
        JournalOptions { background: false, salt: Uuid::new_v4().as_fields().0, ..JournalOptions::default() };
    let medium = Journaled::create(files, parameters.region_bytes, parameters.uuid, log_options);
    let medium = medium.map_err(|error| journal_error([base, log], error))?;
    let journal = medium.acknowledger();
    let store = engines::format(medium, options, parameters).map_err(OpenError::unusable(base))?;
    // Closing writes an image, from which the next opening knows all free space immediately.
    let closed = store.close();
    drop(store);
    let closed = closed.and_then(|()| Ok(journal.closed()?));
    closed.map_err(|error| OpenError::io(base, "finish")(io::Error::other(error)))
}

/// Step 2, if there is an unfinished log.
pub(crate) fn finish_log(dir: &Path) -> Result<(), OpenError> {
    let (unfinished, log) = (dir.join(UNFINISHED_LOG_NAME), dir.join(LOG_NAME));
    if exists(&unfinished)? {
        sync_new(&unfinished)?;
        names::rename_new(&unfinished, &log).map_err(OpenError::io(&log, "create"))?;
    }
    Ok(())
}

/// Opens the store in `dir`.
pub(crate) fn open(
    dir: &Path,
    naming: Naming,
    options: &Options,
    mut locks: Locks,
    progress: &Progress<'_>,
) -> Result<Opened, OpenError> {
    let medium = open_medium(dir, naming, options, &mut locks, progress)?;
    if naming == Naming::Store {
        copy_mark::forget_opened(dir, options)?;
    }
    let [base, log] = naming.files(dir);
    let (journal_identity, identity) = (medium.identity(), Identity::of_journal(&medium));
    let journal = Some(medium.acknowledger());
    let opened = start(medium, identity, &base, options, locks, Begin::Open(progress))?;
    // The remainder is loaded only now: while it opens, the store has the disk to itself and reads only the parts it
    // needs.
    journal.iter().for_each(Acknowledger::load_rest);
    if opened.identity.uuid() == journal_identity {
        Ok(Opened { journal, ..opened })
    } else {
        Err(OpenError::io(&log, "use")(io::Error::other("it belongs to another store")))
    }
}

/// Opens and locks the journal of the store in `dir`, before anything in it is changed.
pub(crate) fn open_medium(
    dir: &Path,
    naming: Naming,
    options: &Options,
    locks: &mut Locks,
    progress: &Progress<'_>,
) -> Result<Journaled<OsFile>, OpenError> {
    let [base, log] = naming.files(dir);
    let (files, options) = open_files(dir, [&base, &log], options, locks)?;
    let replaying =
        |journal::OpenProgress::Replaying { done, total }| progress(OpenProgress::Replaying { done, total });
    let medium = Journaled::open(files, options, &replaying);
    medium.map_err(|error| journal_error([&base, &log], error))
}

/// Opens and locks both files of the store in `dir`.
fn open_files(
    dir: &Path,
    [base, log]: [&Path; 2],
    options: &Options,
    locks: &mut Locks,
) -> Result<(Files<OsFile>, JournalOptions), OpenError> {
    let open = |path: &Path| OsFile::open(path, !options.read_only).map_err(OpenError::io(path, "open"));
    let files = Files { base: open(base)?, log: open(log)? };
    locks.extend(lock(&files, dir, [base, log])?);
    let name = files.base.medium_name().map_err(OpenError::io(base, "examine"))?;
    Ok((files, journal_options(options, name)))
}

/// Opens a journal that may be damaged, for reading only, and returns it with its missing parts.
pub(crate) fn salvage(
    dir: &Path,
    options: &Options,
    locks: &mut Locks,
) -> Result<(Journaled<OsFile>, Vec<JournalError>), OpenError> {
    let [base, log] = Naming::Store.files(dir);
    let (files, options) = open_files(dir, [&base, &log], options, locks)?;
    Journaled::salvage(files, options).map_err(|error| journal_error([&base, &log], error))
}

/// Locks both files of the store in `dir`.
fn lock(files: &Files<OsFile>, dir: &Path, [base, log]: [&Path; 2]) -> Result<[StoreLock; 2], OpenError> {
    let locked = OpenError::locked(dir);
    Ok([files.base.lock(base).map_err(&locked)?, files.log.lock(log).map_err(&locked)?])
}

/// Returns the error with the file that it concerns.
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
    let Addresses { limit_bytes: reserve_bytes, kept_bytes } = options.addresses();
    JournalOptions {
        reserve_bytes,
        kept_bytes,
        writable: !options.read_only,
        huge_pages: options.tuning.huge_pages,
        level: match options.durability {
            _ if options.tuning.sync_on_request => Durability::Process,
            wanted => wanted.unwrap_or(Durability::Power),
        },
        sync_interval: options.sync_interval,
        log_bytes_max: memory::log_bytes_max(options),
        memory_bytes_max: options.memory_bytes_max.map(|bytes| memory::page_bytes(bytes, 0)),
        salt: Uuid::new_v4().as_fields().0,
        name,
        background: true,
        ..JournalOptions::default()
    }
}
