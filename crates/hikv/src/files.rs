//! From a path to an engine: finds, locks and creates the files of a store.
//!
//! A store in a directory consists of `store.hikv`, the region, and `lock`. A journaled store also has `journal.hikv`
//! (`journal_files`): a store is journaled if and only if this file exists. A new region is created under another
//! name, formatted, synced and then renamed, so `store.hikv` is always a complete store. The next creation removes the
//! files of an interrupted one. A device holds the region directly and has no second name, so the region's format mark
//! shows whether formatting has finished.
//!
//! # Locks, in the order of locking; no lock is waited for
//! 1. `lock`: no other process or handle opens, creates or removes anything in the directory.
//! 2. The region, and the log: through the file handles in use, before anything is changed. So there is one writer
//!    even if lock 1 was removed or the files have several names. Files that are to be removed are locked first as
//!    well.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Engine;
use heap::salvage::Head;
use heap::{FEATURE_JOURNAL, Found, Parameters, Region};
use journal::{Acknowledger, JournalError, Journaled, OsFile};
use pmem::{Durability, Medium, Persist};
use pmem_os::{MapOptions, Mapped, StoreLock, names};
use uuid::Uuid;

use crate::file_names::{LOCK_NAME, LOG_NAME, Locks, REGION_NAME, UNFINISHED_NAME};
use crate::journal_files::Naming;
use crate::opening::Progress;
use crate::options::Addresses;
use crate::stats::Identity;
use crate::{OpenError, Options, copy_mark, dir_lock, events, journal_files, probes};

/// An open store, before background threads start.
pub(crate) struct Opened {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) identity: Identity,
    /// The journal, if the store has one.
    pub(crate) journal: Option<Acknowledger<OsFile>>,
    pub(crate) locks: Locks,
}

pub(crate) fn open(path: &Path, options: &Options, progress: &Progress<'_>) -> Result<Opened, OpenError> {
    engine::relax_by_threads();
    refuse_empty(path)?;
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => dir_lock::or_none(path, || open_dir(path, options, progress)),
        Ok(found) if found.file_type().is_char_device() => open_device(path, options, progress),
        Ok(_) => Err(OpenError::NotADirectory { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound && options.create && !options.read_only => {
            options.check_new()?;
            names::create_dirs(path).map_err(OpenError::io(path, "create"))?;
            // The directory stays if any process has put a file into it.
            dir_lock::or_none(path, || open_dir(path, options, progress)).inspect_err(|_| _ = fs::remove_dir(path))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(OpenError::Missing { path: path.to_owned() }),
        Err(error) => Err(OpenError::io(path, "examine")(error)),
    }
}

/// Refuses an empty path, which, joined with a name, would lead to the current directory.
pub(crate) fn refuse_empty(path: &Path) -> Result<(), OpenError> {
    let is_empty = path.as_os_str().is_empty();
    let what = "the path is empty: name a directory or a DAX device";
    if is_empty { Err(OpenError::Option { what: what.to_owned() }) } else { Ok(()) }
}

fn open_dir(dir: &Path, options: &Options, progress: &Progress<'_>) -> Result<Opened, OpenError> {
    let file = dir.join(REGION_NAME);
    let may_create = options.create && !options.read_only;
    if !exists(&file)? {
        if !may_create {
            return Err(OpenError::Missing { path: dir.to_owned() });
        }
        options.check_new()?;
    }
    let locks = dir_lock::lock_dir(dir, options)?;
    // This test has to follow the lock: another process may have created the store before.
    if exists(&file)? {
        if journal_files::is_there(dir)? {
            return journal_files::open(dir, Naming::Store, options, locks, progress);
        }
        return open_region(Mapped::open(&file, map_options(options))?, [dir, &file], options, locks, progress);
    }
    if !may_create {
        return Err(OpenError::Missing { path: dir.to_owned() });
    }
    names::create_dirs(dir).map_err(OpenError::io(dir, "sync"))?;
    let opened = make_region(dir, options, locks)?;
    assert_ours(&dir.join(UNFINISHED_NAME), &opened.locks)?;
    // An interrupted backup may have left its mark.
    copy_mark::forget_opened(dir, options)?;
    finish_region(dir)?;
    Ok(opened)
}

/// Returns true if the name exists. A dangling link counts: its target may not be mounted, and no store may replace
/// it.
pub(crate) fn exists(file: &Path) -> Result<bool, OpenError> {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true).map_err(OpenError::io(file, "examine")),
    }
}

/// Returns an error if the name leads to a file that another process has created.
fn assert_ours(file: &Path, locks: &[StoreLock]) -> Result<(), OpenError> {
    for lock in locks {
        if lock.is_of(file).map_err(OpenError::io(file, "examine"))? {
            return Ok(());
        }
    }
    Err(OpenError::io(file, "finish")(io::Error::other("another process is creating a store in its directory")))
}

/// Creates a region in `dir`, under the name of an unfinished one.
pub(crate) fn make_region(dir: &Path, options: &Options, locks: Locks) -> Result<Opened, OpenError> {
    journal_files::remove_unfinished(dir)?;
    let unfinished = dir.join(UNFINISHED_NAME);
    remove_left(&unfinished, dir)?;
    let medium = Mapped::create(&unfinished, Parameters::REGION_BYTES_DEFAULT, map_options(options))?;
    if medium.lacks_a_journal() && options.durability != Some(Durability::Process) {
        drop(medium);
        remove_left(&unfinished, dir)?;
        journal_files::make(dir, options, &parameters(options))?;
        return journal_files::open(dir, Naming::Unfinished, options, locks, &|_| {});
    }
    format_region(medium, [dir, &unfinished], options, locks).inspect_err(|_| {
        // A remaining file is harmless: the next creation removes it.
        let _ = fs::remove_file(&unfinished);
    })
}

/// Turns a new region into a store: its bytes are durable before its name is.
pub(crate) fn finish_region(dir: &Path) -> Result<(), OpenError> {
    let (unfinished, file) = (dir.join(UNFINISHED_NAME), dir.join(REGION_NAME));
    journal_files::finish_log(dir)?;
    sync_new(&unfinished)?;
    names::rename_new(&unfinished, &file).map_err(OpenError::io(&file, "create"))
}

/// Removes `file`, which an interrupted creation of the store in `dir` may have left, unless it is in use.
pub(crate) fn remove_left(file: &Path, dir: &Path) -> Result<(), OpenError> {
    StoreLock::remove_unused(file).map_err(OpenError::locked(dir))
}

fn open_device(path: &Path, options: &Options, progress: &Progress<'_>) -> Result<Opened, OpenError> {
    let medium = Mapped::open_device(path, map_options(options))?;
    let found = Region::probe(&medium).map_err(|error| OpenError::unusable(path)(error.into()))?;
    match found {
        Found::Formatted => open_region(medium, [path, path], options, Locks::new(), progress),
        Found::Fresh if options.create && !options.read_only => {
            options.check_new()?;
            format_region(medium, [path, path], options, Locks::new())
        }
        Found::Fresh => Err(OpenError::Missing { path: path.to_owned() }),
    }
}

/// A store that is too damaged to be opened, for reading only.
pub(crate) struct Damaged {
    pub(crate) medium: DamagedMedium,
    /// The file or device.
    pub(crate) file: PathBuf,
    /// The missing parts of the journal.
    pub(crate) missing: Vec<MissingFile>,
    pub(crate) _locks: Locks,
}

/// A missing part of a journal, and so of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MissingFile {
    /// The journal's path.
    pub path: PathBuf,
    /// The missing part and the consequence.
    pub what: String,
}

/// The region of a damaged store.
pub(crate) enum DamagedMedium {
    Mapped(Box<Mapped>),
    Journaled(Journaled<OsFile>),
}

/// Opens a store that may be damaged. Creates and changes nothing.
pub(crate) fn open_damaged(path: &Path) -> Result<Damaged, OpenError> {
    let options = Options::new().read_only(true);
    let found = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => OpenError::Missing { path: path.to_owned() },
        _ => OpenError::io(path, "examine")(error),
    })?;
    if found.file_type().is_char_device() {
        let medium = Mapped::open_device(path, map_options(&options))?;
        let locks = vec![medium.lock(path).map_err(OpenError::locked(path))?];
        let medium = DamagedMedium::Mapped(Box::new(medium));
        return Ok(Damaged { medium, file: path.to_owned(), missing: Vec::new(), _locks: locks });
    }
    if !found.is_dir() {
        return Err(OpenError::NotADirectory { path: path.to_owned() });
    }
    let (file, lock_file) = (path.join(REGION_NAME), path.join(LOCK_NAME));
    if !exists(&file)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let mut locks = Locks::new();
    if exists(&lock_file)? {
        locks.push(StoreLock::shared(&lock_file).map_err(OpenError::locked(path))?);
    }
    let (medium, missing) = damaged_medium(path, &file, &options, &mut locks)?;
    Ok(Damaged { medium, file, missing, _locks: locks })
}

/// Returns the region with the intact part of the journal if that belongs to the store, otherwise only the region.
fn damaged_medium(
    dir: &Path,
    file: &Path,
    options: &Options,
    locks: &mut Locks,
) -> Result<(DamagedMedium, Vec<MissingFile>), OpenError> {
    let log = dir.join(LOG_NAME);
    let missing = |what: &str| vec![MissingFile { path: log.clone(), what: what.into() }];
    let base = Mapped::open(file, map_options(options))?;
    locks.push(base.lock(file).map_err(OpenError::locked(dir))?);
    let head = Head::read(&base, &mut |_, _| ()).map_err(|error| OpenError::unusable(file)(error.into()))?;
    if !journal_files::is_there(dir)? {
        let is_journaled = head.superblock.is_some_and(|superblock| superblock.features & FEATURE_JOURNAL != 0);
        let what = "the journal is missing: the last changes are lost, and items that they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), if is_journaled { missing(what) } else { Vec::new() }));
    }
    let (medium, damage) = journal_files::salvage(dir, options, locks)?;
    let is_foreign = head.superblock.is_some_and(|superblock| superblock.uuid != medium.identity());
    if damage.iter().any(|error| matches!(error, JournalError::Unfinished)) {
        let what =
            "the journal has no intact segment: the last changes are lost, and items that they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), missing(what)));
    }
    if is_foreign && medium.identity() != [0; 16] {
        let what =
            "the journal belongs to another store: the last changes are lost, and items that they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), missing(what)));
    }
    let missing = damage.iter().map(|error| MissingFile { path: log.clone(), what: error.to_string() });
    Ok((DamagedMedium::Journaled(medium), missing.collect()))
}

fn map_options(options: &Options) -> MapOptions {
    let Addresses { limit_bytes: reserve_bytes, kept_bytes } = options.addresses();
    MapOptions {
        reserve_bytes,
        kept_bytes,
        writable: !options.read_only,
        huge_pages: options.tuning.huge_pages,
        non_temporal: options.emulation.non_temporal,
    }
}

/// Returns the parameters of a new store.
fn parameters(options: &Options) -> Parameters {
    Parameters {
        uuid: Uuid::new_v4().into_bytes(),
        hash_seed: Uuid::new_v4().as_u64_pair().0,
        partition_count: options.tuning.partition_count,
        region_bytes: Parameters::REGION_BYTES_DEFAULT,
    }
}

/// Creates a store in `medium`, the file of the store in `dir`.
fn format_region(
    medium: Mapped,
    [dir, file]: [&Path; 2],
    options: &Options,
    mut locks: Locks,
) -> Result<Opened, OpenError> {
    locks.push(medium.lock(file).map_err(OpenError::locked(dir))?);
    options.check_without_journal(medium.name())?;
    check_durability(&medium, file, options)?;
    let identity = Identity::of(&medium);
    start(medium, identity, file, options, locks, Begin::Format(parameters(options)))
}

fn open_region(
    medium: Mapped,
    [dir, file]: [&Path; 2],
    options: &Options,
    mut locks: Locks,
    progress: &Progress<'_>,
) -> Result<Opened, OpenError> {
    locks.push(medium.lock(file).map_err(OpenError::locked(dir))?);
    options.check_without_journal(medium.name())?;
    check_durability(&medium, file, options)?;
    if dir != file {
        copy_mark::forget_opened(dir, options)?;
    }
    let identity = Identity::of(&medium);
    start(medium, identity, file, options, locks, Begin::Open(progress))
}

/// Refuses a storage that provides less than the requested durability or, if none is requested, less than the store
/// was created for (`docs/decisions/0032-refuse-weaker-durability-and-lost-files.md`). Exception: a read-only store
/// promises no durability.
fn check_durability(medium: &Mapped, file: &Path, options: &Options) -> Result<(), OpenError> {
    let (given, why) = (medium.durability(), medium.explain());
    let made_for = Region::made_for(medium).filter(|&level| level > given && !options.read_only);
    let refused = |wanted, remedy: &str| {
        Err(OpenError::Durability { path: file.to_owned(), wanted, given, why: format!("{why}; {remedy}") })
    };
    match (options.durability, made_for) {
        (Some(wanted), _) if wanted > given && medium.lacks_a_journal() => {
            refused(wanted, "the store was created without a journal; copy it into a new store (hikv::convert)")
        }
        (Some(wanted), _) if wanted > given => refused(wanted, "create the store on a disk, where it gets a journal"),
        (None, Some(wanted)) => refused(
            wanted,
            "it provided that level when the store was created; mount it as it was then, or request a lower level if \
             writes may be lost",
        ),
        (Some(_), Some(made_for)) => {
            events::level_is_lower(file, made_for, given, why);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The way to begin with a region: create or open a store.
pub(crate) enum Begin<'a> {
    Format(Parameters),
    Open(&'a Progress<'a>),
}

/// Creates or opens the store in `file`.
pub(crate) fn start<M: Medium>(
    medium: M,
    identity: Identity,
    file: &Path,
    options: &Options,
    locks: Locks,
    begin: Begin<'_>,
) -> Result<Opened, OpenError> {
    let engine = probes::engine(medium, options, begin, file)?;
    let identity = identity.with_uuid(Uuid::from_bytes(engine.uuid()));
    Ok(Opened { engine, identity, journal: None, locks })
}

/// Syncs a new file's bytes and length, before its name becomes durable.
pub(crate) fn sync_new(file: &Path) -> Result<(), OpenError> {
    let opened = fs::File::open(file).map_err(OpenError::io(file, "open"))?;
    opened.sync_all().map_err(OpenError::io(file, "sync"))
}

/// Returns the file that holds the region of the store at `path`.
pub(crate) fn region_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(REGION_NAME) } else { path.to_owned() }
}
