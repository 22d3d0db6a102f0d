//! From a path to an engine: which file, locked how, created how.
//!
//! A store in a directory is `store.hikv`, the region, and `lock`; and, where it is journaled, `journal.hikv`
//! (`journal_files`). The files decide: a store with a journal is journaled, one without is not. A new region is made under
//! another name, formatted, synced and then renamed, so that `store.hikv` is a whole store whenever it is there at all; what
//! an interrupted creation left is removed by the next. A device holds the region itself, and has no other name to hide an
//! unfinished format under: the region's format mark tells.
//!
//! # Locks, in the order in which they are taken; none is waited for
//! 1. `lock`: no other opening opens, makes or removes anything in the directory.
//! 2. The region, and the log: through the handles by which they are used, before anything is changed. Where 1 was removed,
//!    or the files have other names as well, there is one writer still. What is to be removed is locked first, too.

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

use crate::journal_files::Naming;
use crate::opening::Progress;
use crate::options::Addresses;
use crate::stats::Identity;
use crate::{OpenError, Options, copy_mark, dir_lock, events, journal_files, probes};

pub(crate) const REGION_NAME: &str = "store.hikv";
pub(crate) const UNFINISHED_NAME: &str = "store.hikv.new";
pub(crate) const LOCK_NAME: &str = "lock";

/// An open region.
pub(crate) struct Opened {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) identity: Identity,
    /// Where there is one.
    pub(crate) journal: Option<Acknowledger<OsFile>>,
    pub(crate) locks: Locks,
}

/// What keeps others away from a store. No lock file is among them where the store is read on a file system that cannot be
/// written: nobody writes there.
pub(crate) type Locks = Vec<StoreLock>;

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
            // A directory that holds something, of whatever process, stays.
            dir_lock::or_none(path, || open_dir(path, options, progress)).inspect_err(|_| _ = fs::remove_dir(path))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(OpenError::Missing { path: path.to_owned() }),
        Err(error) => Err(OpenError::io(path, "examine")(error)),
    }
}

/// Joined with a name it would be a file in the current directory.
pub(crate) fn refuse_empty(path: &Path) -> Result<(), OpenError> {
    let is_empty = path.as_os_str().is_empty();
    if is_empty { Err(OpenError::Option { what: "a path without a character is none".to_owned() }) } else { Ok(()) }
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
    // Only now: another process may have created the store meanwhile.
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
    // Where a backup was interrupted the mark was left.
    copy_mark::forget_opened(dir, options)?;
    finish_region(dir)?;
    Ok(opened)
}

/// Whether there is anything of that name. A link that leads nowhere is something: what it should lead to is perhaps not
/// mounted, and no store is to be made in its place.
pub(crate) fn exists(file: &Path) -> Result<bool, OpenError> {
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true).map_err(OpenError::io(file, "examine")),
    }
}

/// An error if the name leads to something that another process has made meanwhile.
fn assert_ours(file: &Path, locks: &[StoreLock]) -> Result<(), OpenError> {
    for lock in locks {
        if lock.is_of(file).map_err(OpenError::io(file, "examine"))? {
            return Ok(());
        }
    }
    Err(OpenError::io(file, "finish")(io::Error::other("somebody else makes a store in its directory")))
}

/// A new region in `dir`, under the name of an unfinished one.
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
        // It is in nobody's way; the next creation removes it, too.
        let _ = fs::remove_file(&unfinished);
    })
}

/// Makes a store of a new region: its bytes are durable before its name is.
pub(crate) fn finish_region(dir: &Path) -> Result<(), OpenError> {
    let (unfinished, file) = (dir.join(UNFINISHED_NAME), dir.join(REGION_NAME));
    journal_files::finish_log(dir)?;
    sync_new(&unfinished)?;
    names::rename_new(&unfinished, &file).map_err(OpenError::io(&file, "create"))
}

/// Removes what an interrupted making left of the store `dir`, if it did: nothing that is in use.
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

/// A store that is too damaged to be opened, for reading alone.
pub(crate) struct Damaged {
    pub(crate) medium: DamagedMedium,
    /// The file or device.
    pub(crate) file: PathBuf,
    /// What is missing of the journal.
    pub(crate) missing: Vec<MissingFile>,
    pub(crate) _locks: Locks,
}

/// What a journal lacks, and with it the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingFile {
    /// The journal.
    pub path: PathBuf,
    /// Where, and what.
    pub what: String,
}

/// Its region.
pub(crate) enum DamagedMedium {
    Mapped(Box<Mapped>),
    Journaled(Journaled<OsFile>),
}

/// Opens a store that may be damaged. Nothing is made or changed.
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

/// With whatever is whole of the journal, if it is the store's; the base alone where nothing is.
fn damaged_medium(
    dir: &Path,
    file: &Path,
    options: &Options,
    locks: &mut Locks,
) -> Result<(DamagedMedium, Vec<MissingFile>), OpenError> {
    let log = dir.join(journal_files::LOG_NAME);
    let missing = |what: &str| vec![MissingFile { path: log.clone(), what: what.into() }];
    let base = Mapped::open(file, map_options(options))?;
    locks.push(base.lock(file).map_err(OpenError::locked(dir))?);
    let head = Head::read(&base, &mut |_, _| ()).map_err(|error| OpenError::unusable(file)(error.into()))?;
    if !journal_files::is_there(dir)? {
        let is_journaled = head.superblock.is_some_and(|superblock| superblock.features & FEATURE_JOURNAL != 0);
        let what = "it is not there: the last changes are lost, and what they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), if is_journaled { missing(what) } else { Vec::new() }));
    }
    let (medium, damage) = journal_files::salvage(dir, options, locks)?;
    let is_foreign = head.superblock.is_some_and(|superblock| superblock.uuid != medium.identity());
    if damage.iter().any(|error| matches!(error, JournalError::Unfinished)) {
        let what = "no segment of it is whole: the last changes are lost, and what they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), missing(what)));
    }
    if is_foreign && medium.identity() != [0; 16] {
        let what = "it belongs to another store: the last changes are lost, and what they replaced may be torn";
        return Ok((DamagedMedium::Mapped(Box::new(base)), missing(what)));
    }
    let missing = damage.iter().map(|error| MissingFile { path: log.clone(), what: error.to_string() });
    Ok((DamagedMedium::Journaled(medium), missing.collect()))
}

fn map_options(options: &Options) -> MapOptions {
    let Addresses { limit_bytes: reserve_bytes, kept_bytes } = options.addresses();
    MapOptions { reserve_bytes, kept_bytes, writable: !options.read_only, huge_pages: options.huge_pages }
}

/// What a new store is to be.
fn parameters(options: &Options) -> Parameters {
    Parameters {
        uuid: Uuid::new_v4().into_bytes(),
        hash_seed: Uuid::new_v4().as_u64_pair().0,
        partition_count: options.partition_count,
        region_bytes: Parameters::REGION_BYTES_DEFAULT,
    }
}

/// Makes a region of `medium`, the file of the store `dir`.
fn format_region(
    medium: Mapped,
    [dir, file]: [&Path; 2],
    options: &Options,
    mut locks: Locks,
) -> Result<Opened, OpenError> {
    locks.push(medium.lock(file).map_err(OpenError::locked(dir))?);
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
    check_durability(&medium, file, options)?;
    if dir != file {
        copy_mark::forget_opened(dir, options)?;
    }
    let identity = Identity::of(&medium);
    start(medium, identity, file, options, locks, Begin::Open(progress))
}

/// Never less than what was asked for; nor, where nobody asks, than what the store was made for
/// (`docs/decisions/0032-refuse-weaker-durability-and-lost-files.md`). A store that is opened only to be read promises nothing.
fn check_durability(medium: &Mapped, file: &Path, options: &Options) -> Result<(), OpenError> {
    let (given, why) = (medium.durability(), medium.explain());
    let made_for = Region::made_for(medium).filter(|&level| level > given && !options.read_only);
    let refused = |wanted, remedy: &str| {
        Err(OpenError::Durability { path: file.to_owned(), wanted, given, why: format!("{why}; {remedy}") })
    };
    match (options.durability, made_for) {
        (Some(wanted), _) if wanted > given && medium.lacks_a_journal() => {
            refused(wanted, "the store was made without a journal: dump it, and load it into a new one")
        }
        (Some(wanted), _) if wanted > given => refused(wanted, "a store on a disk would have a journal"),
        (None, Some(wanted)) => refused(
            wanted,
            "it gave that when the store was made: mount it as it was then, or ask for less if writes may be lost",
        ),
        (Some(_), Some(made_for)) => {
            events::level_is_lower(file, made_for, given, why);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What is done with a region.
pub(crate) enum Begin<'a> {
    Format(Parameters),
    Open(&'a Progress<'a>),
}

/// Makes or opens the store of `file`.
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

/// A new file's bytes and length reach the disk, where there is one, before its name does.
pub(crate) fn sync_new(file: &Path) -> Result<(), OpenError> {
    let opened = fs::File::open(file).map_err(OpenError::io(file, "open"))?;
    opened.sync_all().map_err(OpenError::io(file, "sync"))
}

/// The file that holds the region of the store at `path`.
pub(crate) fn region_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(REGION_NAME) } else { path.to_owned() }
}
