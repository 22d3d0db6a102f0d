//! From a path to an engine: which file, locked how, created how.
//!
//! A store in a directory is `store.hikv`, the region, and `lock`; and, where it is journaled, `journal.hikv`
//! (`journal_files`). The files decide: with a journal it is journaled, without it is not. A new region is made under
//! another name, formatted, synced and then renamed, so that `store.hikv` is a whole store whenever it is there at all; what
//! an interrupted creation left is removed by the next. A device holds the region itself, and has no other name to hide an
//! unfinished format under: the region's format mark tells.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Engine, HiKv, HostDram, hikv::Parameters};
use heap::{Found, Region};
use journal::{Acknowledger, Journaled, OsFile};
use pmem::{Durability, Latency, Medium, PersistCounts, Probed, arch};
use pmem_os::{MapOptions, Mapped, StoreLock, sync_dir};
use uuid::Uuid;

use crate::journal_files::{Naming, Progress};
use crate::stats::Identity;
use crate::{OpenError, Options, copy_mark, journal_files};

pub(crate) const REGION_NAME: &str = "store.hikv";
pub(crate) const UNFINISHED_NAME: &str = "store.hikv.new";
pub(crate) const LOCK_NAME: &str = "lock";

/// An open region.
pub(crate) struct Opened {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) identity: Identity,
    /// Where there is one.
    pub(crate) journal: Option<Acknowledger<OsFile>>,
    /// None where the store is read on a file system that cannot be written: nobody writes there.
    pub(crate) lock: Option<StoreLock>,
}

pub(crate) fn open(path: &Path, options: &Options, progress: &Progress<'_>) -> Result<Opened, OpenError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => open_dir(path, options, progress),
        Ok(found) if found.file_type().is_char_device() => open_device(path, options),
        Ok(_) => Err(OpenError::NotADirectory { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound && options.create && !options.read_only => {
            fs::create_dir_all(path).map_err(OpenError::io(path, "create"))?;
            open_dir(path, options, progress)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(OpenError::Missing { path: path.to_owned() }),
        Err(error) => Err(OpenError::io(path, "examine")(error)),
    }
}

fn open_dir(dir: &Path, options: &Options, progress: &Progress<'_>) -> Result<Opened, OpenError> {
    let file = dir.join(REGION_NAME);
    let exists = |file: &Path| file.try_exists().map_err(OpenError::io(file, "examine"));
    let may_create = options.create && !options.read_only;
    if !may_create && !exists(&file)? {
        return Err(OpenError::Missing { path: dir.to_owned() });
    }
    let lock = lock_dir(dir, options)?;
    // Only now: another process may have created the store meanwhile.
    if exists(&file)? {
        if !options.read_only {
            copy_mark::forget(dir).map_err(OpenError::io(dir, "take the mark of a copy from"))?;
        }
        if journal_files::is_there(dir)? {
            return journal_files::open(dir, Naming::Store, options, lock, progress);
        }
        return open_region(Mapped::open(&file, map_options(options))?, &file, options, lock);
    }
    if !may_create {
        return Err(OpenError::Missing { path: dir.to_owned() });
    }
    let opened = make_region(dir, options, lock)?;
    finish_region(dir)?;
    Ok(opened)
}

/// A new region in `dir`, under the name of an unfinished one.
pub(crate) fn make_region(dir: &Path, options: &Options, lock: Option<StoreLock>) -> Result<Opened, OpenError> {
    journal_files::remove_unfinished(dir)?;
    let unfinished = dir.join(UNFINISHED_NAME);
    remove(&unfinished)?;
    let medium = Mapped::create(&unfinished, Parameters::REGION_BYTES_DEFAULT, map_options(options))?;
    if medium.lacks_a_journal() && options.durability != Some(Durability::Process) {
        drop(medium);
        remove(&unfinished)?;
        journal_files::make(dir, &parameters(options))?;
        return journal_files::open(dir, Naming::Unfinished, options, lock, &|_| {});
    }
    format_region(medium, &unfinished, options, lock).inspect_err(|_| {
        // It is in nobody's way; the next creation removes it, too.
        let _ = fs::remove_file(&unfinished);
    })
}

/// Makes a store of a new region: its bytes are durable before its name is.
pub(crate) fn finish_region(dir: &Path) -> Result<(), OpenError> {
    let (unfinished, file) = (dir.join(UNFINISHED_NAME), dir.join(REGION_NAME));
    journal_files::finish_log(dir)?;
    sync_new(&unfinished)?;
    fs::rename(&unfinished, &file).map_err(OpenError::io(&file, "create"))?;
    sync_dir(dir).map_err(OpenError::io(dir, "sync"))
}

/// Removes a file that may be there.
pub(crate) fn remove(file: &Path) -> Result<(), OpenError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(OpenError::io(file, "remove")(error)),
        _ => Ok(()),
    }
}

fn open_device(path: &Path, options: &Options) -> Result<Opened, OpenError> {
    let lock = Some(lock(path, path, options)?);
    let medium = Mapped::open_device(path, map_options(options))?;
    let found = Region::probe(&medium).map_err(|error| OpenError::unusable(path)(error.into()))?;
    match found {
        Found::Formatted => open_region(medium, path, options, lock),
        Found::Fresh if options.create && !options.read_only => format_region(medium, path, options, lock),
        Found::Fresh => Err(OpenError::Missing { path: path.to_owned() }),
    }
}

/// A store that is too damaged to be opened, for reading alone.
pub(crate) struct Damaged {
    pub(crate) medium: DamagedMedium,
    /// The file or device.
    pub(crate) file: PathBuf,
    pub(crate) _lock: Option<StoreLock>,
}

/// Its region.
pub(crate) enum DamagedMedium {
    Mapped(Mapped),
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
        let lock = Some(lock(path, path, &options)?);
        let medium = DamagedMedium::Mapped(Mapped::open_device(path, map_options(&options))?);
        return Ok(Damaged { medium, file: path.to_owned(), _lock: lock });
    }
    if !found.is_dir() {
        return Err(OpenError::NotADirectory { path: path.to_owned() });
    }
    let (file, lock_file) = (path.join(REGION_NAME), path.join(LOCK_NAME));
    if !file.try_exists().map_err(OpenError::io(&file, "examine"))? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let lock = lock_file.exists().then(|| lock(&lock_file, path, &options)).transpose()?;
    let medium = if journal_files::is_there(path)? {
        DamagedMedium::Journaled(journal_files::open_medium(path, Naming::Store, &options, &|_| {})?)
    } else {
        DamagedMedium::Mapped(Mapped::open(&file, map_options(&options))?)
    };
    Ok(Damaged { medium, file, _lock: lock })
}

/// Locks the store in `dir`. A copy of a store may lack the lock file: a reader makes it, too, if it can.
pub(crate) fn lock_dir(dir: &Path, options: &Options) -> Result<Option<StoreLock>, OpenError> {
    let file = dir.join(LOCK_NAME);
    if options.read_only && !file.try_exists().map_err(OpenError::io(&file, "examine"))? {
        match fs::OpenOptions::new().append(true).create(true).open(&file) {
            Err(error) if matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
                return Ok(None);
            }
            made => drop(made.map_err(OpenError::io(&file, "create"))?),
        }
    }
    lock(&file, dir, options).map(Some)
}

fn lock(file: &Path, store: &Path, options: &Options) -> Result<StoreLock, OpenError> {
    let lock = if options.read_only { StoreLock::shared(file) } else { StoreLock::exclusive(file) };
    lock.map_err(OpenError::locked(store))
}

fn map_options(options: &Options) -> MapOptions {
    MapOptions { reserve_bytes: options.region_bytes_max, writable: !options.read_only, huge_pages: options.huge_pages }
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

fn format_region(medium: Mapped, file: &Path, options: &Options, lock: Option<StoreLock>) -> Result<Opened, OpenError> {
    check_durability(&medium, file, options)?;
    let identity = Identity::of(&medium);
    let opened = start(medium, identity, file, options, lock, Some(parameters(options)))?;
    sync_new(file)?;
    Ok(opened)
}

fn open_region(medium: Mapped, file: &Path, options: &Options, lock: Option<StoreLock>) -> Result<Opened, OpenError> {
    check_durability(&medium, file, options)?;
    let identity = Identity::of(&medium);
    start(medium, identity, file, options, lock, None)
}

/// Never less than what was asked for.
fn check_durability(medium: &Mapped, file: &Path, options: &Options) -> Result<(), OpenError> {
    let (given, why) = (medium.durability(), medium.explain());
    match options.durability {
        Some(wanted) if wanted > given => {
            let remedy = if medium.lacks_a_journal() {
                "; the store was made without a journal: dump it, and load it into a new one"
            } else {
                "; a store on a disk would have a journal"
            };
            Err(OpenError::Durability { path: file.to_owned(), wanted, given, why: format!("{why}{remedy}") })
        }
        _ => Ok(()),
    }
}

/// Puts the probes that are asked for around the medium.
pub(crate) fn start<M: Medium>(
    medium: M,
    identity: Identity,
    file: &Path,
    options: &Options,
    lock: Option<StoreLock>,
    format: Option<Parameters>,
) -> Result<Opened, OpenError> {
    let latency = Latency { persist_ticks: ticks(options.persist_delay), read_ticks: ticks(options.read_delay) };
    let delays = (latency != Latency { persist_ticks: 0, read_ticks: 0 }).then_some(latency);
    let counts = options.count_persists.then(PersistCounts::default);
    // One type for every choice of probes: each medium that an engine is compiled for is a copy of the engine.
    let (engine, uuid) = match (&delays, &counts) {
        (None, None) => engine(medium, options, format),
        _ => engine(Probed::with_probe(medium, (delays, counts)), options, format),
    }
    .map_err(OpenError::unusable(file))?;
    Ok(Opened { engine, identity: identity.with_uuid(uuid), journal: None, lock })
}

fn engine<M: Medium>(
    medium: M,
    options: &Options,
    format: Option<Parameters>,
) -> Result<(Arc<dyn Engine>, Uuid), engine::OpenError> {
    let hikv = match format {
        Some(parameters) => HiKv::format(medium, HostDram, &parameters)?,
        None => HiKv::open(medium, HostDram)?,
    };
    let hikv = hikv.verifying(options.verify).compacting_above(options.compact_above);
    let hikv = hikv.by_clock(options.clock.clone());
    let uuid = Uuid::from_bytes(hikv.uuid());
    // Stores without order are of the same type, since each type is another copy of the engine.
    let order = if options.ordered {
        engine::Ordered::new(options.worker_count().max(1), HostDram)
    } else {
        engine::Ordered::never(HostDram)
    };
    Ok((Arc::new(hikv.ordered(order)), uuid))
}

/// A new region's bytes and length reach the disk, where there is one, before its name does.
pub(crate) fn sync_new(file: &Path) -> Result<(), OpenError> {
    let opened = fs::File::open(file).map_err(OpenError::io(file, "open"))?;
    let is_file = opened.metadata().is_ok_and(|found| found.is_file());
    if is_file { opened.sync_all().map_err(OpenError::io(file, "sync")) } else { Ok(()) }
}

/// A duration in ticks of the time-stamp counter, whose rate is measured when it is first asked for.
fn ticks(duration: Duration) -> u64 {
    const MEASURED: Duration = Duration::from_millis(5);
    if duration.is_zero() {
        return 0;
    }
    let (start, first) = (Instant::now(), arch::timestamp());
    while start.elapsed() < MEASURED {
        std::hint::spin_loop();
    }
    let rate = (arch::timestamp() - first) as f64 / start.elapsed().as_secs_f64();
    (duration.as_secs_f64() * rate) as u64
}

/// The file that holds the region of the store at `path`.
pub(crate) fn region_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(REGION_NAME) } else { path.to_owned() }
}
