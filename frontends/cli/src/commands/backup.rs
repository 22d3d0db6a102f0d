//! `hikv backup`, `hikv restore` and `hikv convert`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hikv::{BackupError, BackupProgress, BackupReport, EngineKind, OpenError, Options};

use crate::failure::{Failure, with_sources};
use crate::interrupt::Interrupt;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::serving;
use crate::skipped::Skipped;

/// Copy all items into a new store
///
/// OUT opens as a store. Until it is complete it is called OUT.partial, which does not open as a store. The next backup
/// to OUT removes the remains of an interrupted one. All checksums are verified.
#[derive(Args)]
pub(crate) struct Backup {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The directory of the new store; must not exist
    out: PathBuf,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

/// Make a store from a backup
///
/// The backup is verified first, and the new store before it is renamed to DIR. Until then it is called DIR.partial,
/// which does not open as a store.
#[derive(Args)]
pub(crate) struct Restore {
    /// A directory written by `backup`, or any other store
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The directory of the new store; must not exist
    dir: PathBuf,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

/// Copy all items into a new store of another engine
///
/// FROM is verified first, and the new store before it is renamed to INTO. Until then it is called INTO.partial, which
/// does not open as a store. FROM is not changed.
#[derive(Args)]
pub(crate) struct Convert {
    /// The store: a directory or a DAX device
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The directory of the new store; must not exist
    into: PathBuf,
    /// The new store's engine
    #[arg(long, value_name = "NAME")]
    engine: EngineKind,
    /// Skip, report and count damaged items instead of refusing a damaged store; the exit code is then 1
    #[arg(long)]
    skip_damaged: bool,
    /// Seconds between progress lines if stderr is not a terminal
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    progress_every: u64,
    #[command(flatten)]
    memory: Memory,
}

impl Backup {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = Options::new().create(false).read_only(true).ordered(false);
        let store = self.memory.options(options).open(&self.dir).map_err(unopened)?;
        shown("backed up", self.progress_every, |progress| store.backup(&self.out, progress), &self.dir)
    }
}

impl Restore {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = self.memory.options(Options::new());
        let restore = |progress: Shown<'_>| options.restore(&self.backup, &self.dir, progress);
        shown("restored", self.progress_every, restore, &self.backup)
    }
}

impl Convert {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.skip_damaged {
            return self.run_skipping_damage();
        }
        let options = self.options();
        let convert = |progress: Shown<'_>| options.convert(&self.from, &self.into, progress);
        shown("converted", self.progress_every, convert, &self.from).map_err(|failure| match failure {
            Failure::Negative(damage) => {
                Failure::Negative(format!("{damage}; --skip-damaged converts the undamaged items"))
            }
            other => other,
        })
    }

    fn options(&self) -> Options {
        self.memory.options(Options::new().engine(self.engine))
    }

    fn run_skipping_damage(self) -> Result<(), Failure> {
        let (options, mut skipped) = (self.options(), Skipped::default());
        let convert = |progress: Shown<'_>| {
            let skip = |damage| skipped.skip(&damage);
            options.convert_skipping_damage(&self.from, &self.into, progress, skip)
        };
        shown("converted", self.progress_every, convert, &self.from)?;
        skipped.verdict(&self.from)
    }
}

/// Returns the failure for a store that cannot be opened. While a process writes to a store, only that process can back
/// it up.
fn unopened(error: OpenError) -> Failure {
    match error {
        OpenError::Locked { .. } if !serving::holds(&error) => {
            Failure::Error(format!("{error}; only that process can back it up now: use it, or stop it"))
        }
        other => other.into(),
    }
}

fn failed(source: &Path) -> impl FnOnce(BackupError) -> Failure {
    move |error| match error {
        BackupError::Read(error) => Failure::at(source.display(), with_sources(&error)),
        BackupError::Damaged { .. } => Failure::Negative(with_sources(&error)),
        BackupError::Open(error) => error.into(),
        other => Failure::Error(with_sources(&other)),
    }
}

/// A callback that shows the progress of a copy, and stops the copy at a signal.
type Shown<'a> = &'a mut dyn FnMut(BackupProgress) -> ControlFlow<()>;

/// Copies the items of `source` with `copy`, and shows the progress.
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
        interrupt.check(|| format!("{}; the new store was removed", progress.end()))?;
        return Err(failed(source)(BackupError::Stopped));
    }
    let report = copied.map_err(failed(source))?;
    progress.set(report.items, report.items);
    progress.finish();
    Ok(())
}
