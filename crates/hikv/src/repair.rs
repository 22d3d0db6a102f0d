//! Salvaging a damaged store into a new one.
//!
//! What counts as an item of a damaged region is decided in `engine_hikv::salvage`. Here the items get a store of their own, by the
//! steps of a backup (`backup`). The new store is called `OUT.partial` until all items are there. The next repair to the same place removes
//! what an interrupted one has left.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use engine::{Error, Expiry, OpenError as RegionError};
use engine_hikv::salvage::{SalvageError, Sink, Taken, salvage};
use heap::HeapError;
use heap::salvage::Head;

pub use engine_hikv::salvage::{Finding, Weight};

use crate::backup_error::BackupError;
use crate::copy_mark::{Mark, Purpose};
pub use crate::files::MissingFile;
use crate::files::{self, Damaged, DamagedMedium};
use crate::partial::Copy;
use crate::{OpenError, Options, Store};

/// How far a repair has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairProgress {
    /// Items salvaged so far.
    pub items: u64,
    /// Segments of the index that were read.
    pub done: u64,
    /// Segments in all.
    pub total: u64,
}

/// Something that [`repair`] has to tell.
#[derive(Debug)]
pub enum RepairEvent {
    /// Something is not as it should be.
    Found(Finding),
    /// Something of the journal is lost. What its checksums prove is salvaged, what came behind it too; of the items that it
    /// changed the store has an older state, or none.
    Missing(MissingFile),
    /// How far it is.
    Progress(RepairProgress),
}

/// What a repair came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RepairReport {
    /// Items that the new store has.
    pub items: u64,
    /// Damage that costs nothing.
    pub mended_count: u64,
    /// What was taken or chosen on less than full evidence.
    pub doubtful_count: u64,
    /// What is lost: entries, runs of keys without a segment, and parts of the journal.
    pub lost_count: u64,
}

/// Why there is no new store. The damaged one is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum RepairError {
    /// The damaged store cannot be read, or nothing of it can be made out.
    From(OpenError),
    /// The place of the new store is taken.
    Taken {
        /// What is there.
        path: PathBuf,
    },
    /// Something else is where the new store was to be, as long as it is not whole.
    Occupied {
        /// What.
        path: PathBuf,
        /// Why it is taken for something else.
        why: String,
    },
    /// The new store cannot be made.
    Into(OpenError),
    /// The store's engine has no salvage.
    Unsupported {
        /// The file or device.
        path: PathBuf,
        /// The engine's name.
        engine: String,
    },
    /// The new store cannot be written.
    Write(Error),
    /// The caller wanted no more.
    Stopped {
        /// How far it was.
        report: RepairReport,
    },
}

/// Salvages what is whole from the store at `from`, a directory or a DAX device that need not open, into a new store in
/// the directory `into`, which must not be there, or be empty. `from` is not changed. What is damaged, doubtful and lost is
/// told to `watch`, which says whether to go on.
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
/// See [`RepairError`]; nothing is left at `into`.
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
    let mark = Mark { purpose: Purpose::Kept, uuid: uuid_of(&damaged) };
    let mut report = RepairReport::default();
    Copy::begin(into, mark, &Options::new())?.complete(|store| {
        report = fill(damaged, store, watch)?;
        // An empty directory makes way.
        match fs::remove_dir(into) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(RepairError::Into(OpenError::io(into, "create")(error)))
            }
            _ => Ok(report.items),
        }
    })?;
    Ok(report)
}

/// Whose store it is; zero if that is lost.
fn uuid_of(damaged: &Damaged) -> [u8; 16] {
    let head = match &damaged.medium {
        DamagedMedium::Mapped(medium) => Head::read(&**medium, &mut |_, _| {}),
        DamagedMedium::Journaled(medium) => Head::read(medium, &mut |_, _| {}),
    };
    head.ok().and_then(|head| head.superblock).map_or([0; 16], |superblock| superblock.uuid)
}

/// Puts the items into the new store.
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

/// True if there is nothing at `path`, or an empty directory. What a link leads to is not ours.
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
        if let Some(is_same) = self.store.get_with(key, |known| known == value)? {
            return Ok(if is_same { Taken::Same } else { Taken::Other });
        }
        self.store.change(|engine| engine.put_until(key, value, expiry))?;
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
    /// Of what making a copy meets.
    fn from(error: BackupError) -> RepairError {
        match error {
            BackupError::Exists { path } => RepairError::Taken { path },
            BackupError::Occupied { path, why } => RepairError::Occupied { path, why },
            BackupError::Open(error) => RepairError::Into(error),
            BackupError::Read(error) | BackupError::Write { error, .. } => RepairError::Write(error),
            BackupError::Place { .. } | BackupError::Damaged { .. } | BackupError::Stream(_) | BackupError::Stopped => {
                unreachable!("a new store's own making meets none of these")
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
                write!(
                    f,
                    "{}: engine {engine} has no repair; `hikv convert --skip-damaged` makes a new store of what can be read",
                    path.display()
                )
            }
            RepairError::From(error) | RepairError::Into(error) => error.fmt(f),
            RepairError::Taken { path } => {
                write!(f, "{} is there already: a repair makes a new store; name a new directory", path.display())
            }
            RepairError::Occupied { path, why } => {
                write!(f, "{} is in the way, and nothing is removed: {why}; move it away", path.display())
            }
            RepairError::Write(error) => write!(f, "the new store: {error}"),
            RepairError::Stopped { report } => write!(f, "stopped after {} items", report.items),
        }
    }
}

impl std::error::Error for RepairError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RepairError::From(error) | RepairError::Into(error) => Some(error),
            RepairError::Write(error) => Some(error),
            _ => None,
        }
    }
}
