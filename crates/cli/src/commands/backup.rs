//! `hikv backup`, `hikv restore` and `hikv convert`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::{BackupError, BackupProgress, BackupReport, EngineKind, OpenError, Options, Store};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::serving;
use crate::skipped::Skipped;

/// Write all items into a new store
///
/// OUT opens as a store. Until it is whole it is called OUT.partial, which does not; what an interruption leaves is removed
/// by the next backup to OUT. All checksums are compared.
#[derive(Args)]
pub(crate) struct Backup {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The directory of the new store, which must not be there
    out: PathBuf,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

/// Make a store from a backup
///
/// The backup is verified first, and the new store before it has its name. Until then it is called DIR.partial, which opens as
/// no store.
#[derive(Args)]
pub(crate) struct Restore {
    /// A directory that `backup` wrote, or any other store
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The directory of the new store, which must not be there
    dir: PathBuf,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

/// Make a store of another engine from a store
///
/// FROM is verified first, and the new store before it has its name; until then it is called INTO.partial, which opens as no
/// store. FROM stays as it is.
#[derive(Args)]
pub(crate) struct Convert {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The directory of the new store, which must not be there
    into: PathBuf,
    /// The new store's engine
    #[arg(long, value_name = "NAME")]
    engine: EngineKind,
    /// Leave out what is damaged, rather than convert nothing: each is said, they are counted, and the exit code is 1
    #[arg(long)]
    skip_damaged: bool,
    /// Seconds between two lines of progress, where stderr is no terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
}

impl Backup {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = Options::new().create(false).read_only(true).ordered(false);
        let store = options.open(&self.dir).map_err(unopened)?;
        shown("backed up", self.progress_every, |progress| store.backup(&self.out, progress), &self.dir)
    }
}

impl Restore {
    pub(super) fn run(self) -> Result<(), Failure> {
        let restore = |progress: Shown<'_>| Store::restore(&self.backup, &self.dir, progress);
        shown("restored", self.progress_every, restore, &self.backup)
    }
}

impl Convert {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.skip_damaged {
            return self.run_past_damage();
        }
        let convert = |progress: Shown<'_>| Store::convert(&self.from, &self.into, self.engine, progress);
        shown("converted", self.progress_every, convert, &self.from).map_err(|failure| match failure {
            Failure::Negative(damage) => Failure::Negative(format!("{damage}; --skip-damaged converts what is whole")),
            other => other,
        })
    }

    fn run_past_damage(self) -> Result<(), Failure> {
        let mut skipped = Skipped::default();
        let convert = |progress: Shown<'_>| {
            let skip = |damage| skipped.skip(&damage);
            Store::convert_skipping_damage(&self.from, &self.into, self.engine, progress, skip)
        };
        shown("converted", self.progress_every, convert, &self.from)?;
        skipped.verdict(&self.from)
    }
}

/// A store has one process that writes to it; nobody else can make a backup of it meanwhile.
fn unopened(error: OpenError) -> Failure {
    match error {
        OpenError::Locked { .. } if !serving::holds(&error) => {
            Failure::Error(format!("{error}; as long as it is, nobody but that process can make a backup of it"))
        }
        other => other.into(),
    }
}

fn failed(source: &Path) -> impl FnOnce(BackupError) -> Failure {
    move |error| match error {
        BackupError::Read(error) => Failure::at(source.display(), error),
        BackupError::Damaged { .. } => Failure::Negative(error.to_string()),
        BackupError::Open(error) => error.into(),
        other => Failure::Error(other.to_string()),
    }
}

/// Is shown how far a copy is, and stops it when a signal comes.
type Shown<'a> = &'a mut dyn FnMut(BackupProgress) -> ControlFlow<()>;

/// Copies the items of `source` by `copy`, and shows how far that is.
fn shown(
    verb: &'static str,
    progress_every: u64,
    copy: impl FnOnce(Shown<'_>) -> Result<BackupReport, BackupError>,
    source: &Path,
) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    let mut progress = None;
    let copied = copy(&mut |at: BackupProgress| {
        let every = Duration::from_secs(progress_every);
        progress.get_or_insert_with(|| Progress::new(verb, Some(at.items_total), every)).set(at.items, at.items);
        interrupt.flow()
    });
    let mut progress = progress.unwrap_or_else(|| Progress::silent(verb));
    if let Err(BackupError::Stopped) = copied {
        interrupt.check(|| format!("{}; nothing of the new store is left", progress.end()))?;
        return Err(failed(source)(BackupError::Stopped));
    }
    let report = copied.map_err(failed(source))?;
    progress.set(report.items, report.items);
    progress.finish();
    Ok(())
}
