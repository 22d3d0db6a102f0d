//! Repair: recovering the items of a damaged store into a new one.
//!
//! `engine_hikv::salvage` decides which bytes of a damaged region are items. This module puts them into a new store,
//! by the steps of a backup (`backup`). The new store is called `OUT.partial` until it is complete. The next repair to
//! the same place removes an interrupted one.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use engine::{Error, Expiry, OpenError as RegionError};
use engine_hikv::salvage::{SalvageError, Sink, Taken, salvage};
use heap::salvage::Head;
use heap::{FEATURE_TREES, HeapError, Superblock};

pub use engine_hikv::salvage::{Finding, Weight};

use crate::backup_error::BackupError;
use crate::copy_mark::{Mark, Purpose};
pub use crate::files::MissingFile;
use crate::files::{self, Damaged, DamagedMedium};
use crate::partial::Copy;
use crate::{OpenError, Options, Store};

/// Progress of a repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RepairProgress {
    /// Items recovered so far.
    pub items: u64,
    /// Segments of the index read so far.
    pub done: u64,
    /// Segments in total.
    pub total: u64,
}

/// An event of [`repair`].
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairEvent {
    /// A damaged part was found.
    Found(Finding),
    /// A part of the journal is lost. Frames before and after it are used if their checksums match. Items that the
    /// lost part changed have an older state, or are missing.
    Missing(MissingFile),
    /// The repair has advanced.
    Progress(RepairProgress),
}

/// Result of a repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Number of items in the new store.
    pub items: u64,
    /// Number of damaged parts that cost no item.
    pub mended_count: u64,
    /// Number of items or parts that were accepted or chosen on incomplete evidence.
    pub doubtful_count: u64,
    /// Number of losses: entries, key ranges without a segment, and parts of the journal.
    pub lost_count: u64,
}

/// An error of a repair. The damaged store is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairError {
    /// The damaged store cannot be read, or holds nothing recognisable.
    From(OpenError),
    /// The path of the new store is occupied.
    Taken {
        /// The path.
        path: PathBuf,
    },
    /// The unfinished new store's path holds other files.
    Occupied {
        /// The path.
        path: PathBuf,
        /// The reason why it is not replaced.
        why: String,
    },
    /// The new store cannot be created.
    Into(OpenError),
    /// The store's engine has no repair.
    Unsupported {
        /// The file or device.
        path: PathBuf,
        /// The engine's name.
        engine: String,
    },
    /// The new store cannot be written.
    Write(Error),
    /// The caller stopped the repair.
    Stopped {
        /// The result so far.
        report: RepairReport,
    },
}

/// Recovers the intact items of the store at `from` into a new store in the directory `into`.
///
/// `from` is a directory or a DAX device, need not be openable, and is not changed. `into` must not exist or must be
/// empty. `watch` is called with all damage, doubtful items, losses and progress, and can stop the repair.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (damaged, whole) = (dir.path().join("damaged"), dir.path().join("whole"));
/// use std::ops::ControlFlow;
/// use hikv::{Store, repair::repair};
///
/// Store::open(&damaged)?.put("answer", "42")?;
/// let report = repair(&damaged, &whole, |_event| ControlFlow::Continue(()))?;
/// assert_eq!((report.items, report.lost_count), (1, 0));
/// assert_eq!(Store::open(&whole)?.get("answer")?.as_deref(), Some(&b"42"[..]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`RepairError::Taken`] if `into` is not empty; [`RepairError::From`] if nothing can be recovered;
/// [`RepairError::Write`] if the disk is full. Nothing is left at `into`.
pub fn repair(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    watch: impl FnMut(RepairEvent) -> ControlFlow<()>,
) -> Result<RepairReport, RepairError> {
    let (from, into) = (from.as_ref(), into.as_ref());
    files::refuse_empty(into).map_err(RepairError::Into)?;
    if !is_vacant(into).map_err(|error| RepairError::Into(OpenError::io(into, "examine")(error)))? {
        return Err(RepairError::Taken { path: into.to_owned() });
    }
    let damaged = files::open_damaged(from).map_err(RepairError::From)?;
    let superblock = superblock_of(&damaged);
    let mark = Mark { purpose: Purpose::Kept, uuid: superblock.map_or([0; 16], |superblock| superblock.uuid) };
    let mut report = RepairReport::default();
    Copy::begin(into, mark, &Options::new())?.complete(|store| {
        report = fill(damaged, store, watch)?;
        let had_trees = superblock.is_some_and(|superblock| superblock.features & FEATURE_TREES != 0);
        let mended = store.keyspace().change(|engine| {
            if had_trees {
                engine.set_has_trees()?;
            }
            catalog::mend(engine)
        });
        mended.map_err(RepairError::Write)?;
        // An empty directory is replaced.
        match fs::remove_dir(into) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(RepairError::Into(OpenError::io(into, "create")(error)))
            }
            _ => Ok(report.items),
        }
    })?;
    Ok(report)
}

/// Returns the damaged store's superblock, unless it is lost.
fn superblock_of(damaged: &Damaged) -> Option<Superblock> {
    let head = match &damaged.medium {
        DamagedMedium::Mapped(medium) => Head::read(&**medium, &mut |_, _| {}),
        DamagedMedium::Journaled(medium) => Head::read(medium, &mut |_, _| {}),
    };
    head.ok().and_then(|head| head.superblock)
}

/// Puts the recovered items into the new store.
fn fill(
    damaged: Damaged,
    store: &Store,
    mut watch: impl FnMut(RepairEvent) -> ControlFlow<()>,
) -> Result<RepairReport, RepairError> {
    let mut filling = Filling { store, report: RepairReport::default(), watch: &mut watch, is_stopped: false };
    let is_complete = damaged.missing.is_empty();
    damaged.missing.into_iter().for_each(|missing| filling.lost_of_journal(missing));
    let outcome = match &damaged.medium {
        DamagedMedium::Mapped(medium) => salvage(medium.as_ref(), is_complete, &mut filling),
        DamagedMedium::Journaled(medium) => salvage(medium, is_complete, &mut filling),
    };
    let report = filling.report;
    outcome.map_err(|error| match error {
        SalvageError::Unusable(RegionError::Heap(HeapError::WrongEngine { found, .. })) => {
            RepairError::Unsupported { path: damaged.file.clone(), engine: found.to_string() }
        }
        SalvageError::Unusable(error) => RepairError::From(OpenError::Unusable { path: damaged.file.clone(), error }),
        SalvageError::Sink(error) => RepairError::Write(error),
        SalvageError::Stopped => RepairError::Stopped { report },
    })?;
    Ok(report)
}

/// Returns true if `path` is free or an empty directory. A symbolic link is neither.
fn is_vacant(path: &Path) -> io::Result<bool> {
    if path.is_symlink() {
        return Ok(false);
    }
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// The new store while it is filled.
struct Filling<'a> {
    store: &'a Store,
    report: RepairReport,
    watch: &'a mut dyn FnMut(RepairEvent) -> ControlFlow<()>,
    is_stopped: bool,
}

impl Filling<'_> {
    fn lost_of_journal(&mut self, missing: MissingFile) {
        self.report.lost_count += 1;
        self.is_stopped |= (self.watch)(RepairEvent::Missing(missing)).is_break();
    }
}

impl Sink for Filling<'_> {
    fn take(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Taken, Error> {
        if let Some(is_same) = self.store.in_place().get(key, |known| known == value)? {
            return Ok(if is_same { Taken::Same } else { Taken::Other });
        }
        if catalog::is_head(key, value) {
            self.store.keyspace().change(|engine| engine.set_has_trees())?;
        }
        self.store.keyspace().change(|engine| engine.put_until(key, value, expiry))?;
        self.report.items += 1;
        Ok(Taken::New)
    }

    fn found(&mut self, finding: Finding) {
        let count = match finding.weight {
            Weight::Mended => &mut self.report.mended_count,
            Weight::Doubtful => &mut self.report.doubtful_count,
            Weight::Lost => &mut self.report.lost_count,
        };
        *count += 1;
        self.is_stopped |= (self.watch)(RepairEvent::Found(finding)).is_break();
    }

    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        let progress = RepairProgress { items: self.report.items, done, total };
        let flow = (self.watch)(RepairEvent::Progress(progress));
        if self.is_stopped { ControlFlow::Break(()) } else { flow }
    }
}

impl From<BackupError> for RepairError {
    /// Converts the errors that creating a copy can return.
    fn from(error: BackupError) -> RepairError {
        match error {
            BackupError::Exists { path } => RepairError::Taken { path },
            BackupError::Occupied { path, why } => RepairError::Occupied { path, why },
            BackupError::Open(error) => RepairError::Into(error),
            BackupError::Read(error) | BackupError::Write { error, .. } => RepairError::Write(error),
            BackupError::Place { .. } | BackupError::Damaged { .. } | BackupError::Stream(_) | BackupError::Stopped => {
                unreachable!("creating a store returns none of these")
            }
        }
    }
}

impl std::fmt::Display for RepairError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RepairError::From(OpenError::Unusable { path, error: RegionError::Heap(error) }) => {
                write!(f, "nothing can be salvaged from {}: {error}", path.display())
            }
            RepairError::Unsupported { path, engine } => {
                let path = path.display();
                write!(f, "{path}: engine {engine} has no repair; copy it with hikv::convert_skipping_damage")
            }
            RepairError::From(error) | RepairError::Into(error) => error.fmt(f),
            RepairError::Taken { path } => {
                write!(f, "{} already exists; name a new directory for the repaired store", path.display())
            }
            RepairError::Occupied { path, why } => {
                write!(f, "{} is in the way, and nothing is removed: {why}; move it away", path.display())
            }
            RepairError::Write(error) => write!(f, "cannot write the new store: {error}"),
            RepairError::Stopped { report } => write!(f, "stopped after {} items", report.items),
        }
    }
}

impl std::error::Error for RepairError {
    /// Returns the source of the inner error, because `Display` includes the inner error's own text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RepairError::From(error) | RepairError::Into(error) => error.source(),
            RepairError::Write(error) => error.source(),
            _ => None,
        }
    }
}
