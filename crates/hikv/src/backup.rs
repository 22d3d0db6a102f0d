//! Backup, restore and conversion: copying a store's items, as they are at one moment, into a new store.
//!
//! | step | an interruption after it leaves |
//! |---|---|
//! | 1 create, lock and empty the directory `OUT.partial`; mark it as a copy ([`crate::copy_mark`]) | no store |
//! | 2 create a region in it, under an unfinished name; put the snapshot's items into it | no store |
//! | 3 close and sync the region | no store |
//! | 4 rename the region; sync the directory | a complete store, in `OUT.partial` |
//! | 5 rename `OUT.partial` to `OUT`; sync the parent | the backup |
//!
//! So an incomplete copy opens as no store, and OUT is always complete. Step 1 removes the files of an earlier
//! interrupted copy. It removes a complete store only if the store has the mark: a store that merely has the name
//! `OUT.partial`, or that was written to, stays.

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use engine::{Damage, Expiry};

use crate::backup_error::BackupError;
use crate::copy_mark::{Mark, Purpose};
use crate::dump::DumpWriter;
use crate::files;
use crate::filling::write_items;
use crate::latest::LatestBackup;
use crate::partial::Copy;
use crate::tree::stored_keys;
use crate::{CallbackReply, EngineKind, OpenError, Options, Store};

/// Progress of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Items written.
    pub items: u64,
    /// Items in the store when it began.
    pub items_total: u64,
}

/// Result of a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of items.
    pub items: u64,
    /// Length of the new store's region in bytes.
    pub region_bytes: u64,
}

impl Store {
    /// Writes all present items to a stream in hikv's dump format ([`crate::dump`]), and returns their number. Other
    /// threads can read and write while it runs. A truncated stream has no end block, which every reader reports.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let mut stream = Vec::new();
    /// assert_eq!(store.backup_to(&mut stream)?, 1);
    ///
    /// let mut reader = hikv::dump::DumpReader::new(&stream[..])?;
    /// assert_eq!(reader.next_item()?.expect("one item").key, b"key");
    /// assert!(reader.next_item()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`BackupError::Read`] if an item is damaged; [`BackupError::Stream`] if the output fails.
    pub fn backup_to(&self, out: impl Write) -> Result<u64, BackupError> {
        let view = self.read_view().map_err(BackupError::Read)?.stored();
        let begin = if view.has_trees().map_err(BackupError::Read)? { DumpWriter::of_trees } else { DumpWriter::new };
        let mut dump = begin(out, self.uuid()).map_err(BackupError::Stream)?;
        let (mut items, mut written) = (0, Ok(()));
        let each = |key: &[u8], value: &[u8], expiry: Expiry| {
            written = dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()));
            items += 1;
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        view.for_each(each).map_err(BackupError::Read)?;
        // Only a complete dump gets an end.
        written.and_then(|()| dump.finish().map(drop)).map_err(BackupError::Stream)?;
        Ok(items)
    }

    /// Writes all present items into a new store in the directory `out`, and verifies every checksum. This store can
    /// be read and written while the backup runs. Until it is complete, the backup is called `out.partial` and opens
    /// as no store. The next backup to `out` removes an interrupted one.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, out) = (dir.path().join("store"), dir.path().join("monday"));
    /// use hikv::Store;
    ///
    /// let store = Store::open(&path)?;
    /// store.put("answer", "42")?;
    /// let report = store.backup(&out, |_| {})?;
    /// store.put("answer", "43")?;
    /// assert_eq!(report.items, 1);
    /// assert_eq!(Store::open_read_only(&out)?.get("answer")?.as_deref(), Some(&b"42"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`BackupError::Exists`] if `out` exists; [`BackupError::Read`] if an item is damaged; [`BackupError::Write`] if
    /// the disk is full. No `out` is created.
    pub fn backup<A: CallbackReply>(
        &self,
        out: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        copy_to(self, out.as_ref(), Purpose::Kept, progress)
    }

    /// Makes a backup in the directory `place` as [`Store::backup`] does, and replaces the backup that an earlier call
    /// made there. One complete backup exists at every moment. Nothing else is ever replaced or removed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, place) = (dir.path().join("store"), dir.path().join("latest"));
    /// use hikv::Store;
    ///
    /// let store = Store::open(&path)?;
    /// for day in ["monday", "tuesday"] {
    ///     store.put("day", day)?;
    ///     store.backup_latest(&place)?;
    /// }
    /// assert_eq!(Store::open_read_only(&place)?.get("day")?.as_deref(), Some(&b"tuesday"[..]));
    ///
    /// std::fs::write(place.join("notes"), "dear")?;
    /// assert!(store.backup_latest(&place).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`FrontEnd::check_backup_place`](crate::FrontEnd::check_backup_place),
    /// [`FrontEnd::check_latest_backup`](crate::FrontEnd::check_latest_backup) and [`Store::backup`].
    pub fn backup_latest(&self, place: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        let latest = LatestBackup::of(self, place.as_ref())?;
        latest.check_place(&self.inner().files)?;
        latest.begin()?;
        let report = copy_to(self, latest.new_path(), Purpose::Latest, |_| {})?;
        latest.put_in_place()?;
        Ok(report)
    }
}

/// Creates a store in the new directory `dir` from a backup, or from any store that no process has open for
/// writing. Verifies the backup first, and the written store before it gets its name.
///
/// # Errors
/// [`BackupError::Exists`] if `dir` exists; [`BackupError::Damaged`] if the backup is damaged;
/// [`BackupError::Open`]. No `dir` is created.
pub fn restore<A: CallbackReply>(
    backup: impl AsRef<Path>,
    dir: impl AsRef<Path>,
    progress: impl FnMut(BackupProgress) -> A,
) -> Result<BackupReport, BackupError> {
    Options::new().restore(backup, dir, progress)
}

/// Creates a store with the engine `engine` in the new directory `into` from the store at `from`, which no process
/// may have open for writing. Verifies `from` first, and the written store before it gets its name. `from` is not
/// changed.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (from, into) = (dir.path().join("old"), dir.path().join("new"));
/// use hikv::{EngineKind, Store};
///
/// Store::open(&from)?.put("answer", "42")?;
/// let report = hikv::convert(&from, &into, EngineKind::HiKv, |_| {})?;
/// assert_eq!((report.items, Store::open(&into)?.engine_kind()), (1, EngineKind::HiKv));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`restore`]; [`BackupError::Write`] if the engine cannot hold an item. No `into` is created.
pub fn convert<A: CallbackReply>(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    engine: EngineKind,
    progress: impl FnMut(BackupProgress) -> A,
) -> Result<BackupReport, BackupError> {
    Options::new().engine(engine).convert(from, into, progress)
}

/// Like [`convert`], for a store that may be damaged: skips damaged items and reports each to `damaged`.
/// `engine` may be the store's own.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use hikv::{EngineKind, Store};
///
/// let (from, into) = (dir.path().join("old"), dir.path().join("new"));
/// Store::open(&from)?.put("key", "value")?;
/// let on_damage = |damage| println!("{damage:?}");
/// let report = hikv::convert_skipping_damage(&from, &into, EngineKind::HiKv, |_| {}, on_damage)?;
/// assert_eq!(report.items, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`convert`]. From a store of the engine HiKV, [`crate::repair`] recovers more.
pub fn convert_skipping_damage<A: CallbackReply>(
    from: impl AsRef<Path>,
    into: impl AsRef<Path>,
    engine: EngineKind,
    progress: impl FnMut(BackupProgress) -> A,
    damaged: impl FnMut(Damage),
) -> Result<BackupReport, BackupError> {
    Options::new().engine(engine).convert_skipping_damage(from, into, progress, damaged)
}

/// Copies the items of `source` into a new store of this engine, with this limit of memory.
pub(crate) fn copy_items<A: CallbackReply>(
    source: &Store,
    dir: &Path,
    (engine, memory_bytes_max): (EngineKind, Option<u64>),
    mut progress: impl FnMut(BackupProgress) -> A,
    damaged: Option<&mut dyn FnMut(Damage)>,
) -> Result<BackupReport, BackupError> {
    let copy = copy_of(source, dir, Purpose::Kept, (engine, memory_bytes_max))?;
    copy.complete(|store| {
        let items_total = match damaged {
            // Some engines count by a walk over items that may be damaged.
            Some(_) => stored_keys(source).len().unwrap_or(0),
            None => {
                let items_total = stored_keys(source).len()?;
                assert_intact(source, BackupProgress { items: 0, items_total }, &mut progress)?;
                items_total
            }
        };
        let items = write_items(&source.read_view()?, items_total, store, &mut progress, damaged)?;
        assert_intact(store, BackupProgress { items, items_total }, &mut progress)?;
        Ok(items)
    })
}

/// Writes the present items of `from` into a new store.
pub(crate) fn copy_to<A: CallbackReply>(
    from: &Store,
    out: &Path,
    purpose: Purpose,
    progress: impl FnMut(BackupProgress) -> A,
) -> Result<BackupReport, BackupError> {
    let copy = copy_of(from, out, purpose, (from.engine_kind(), from.inner().memory_bytes_max))?;
    copy.complete(|store| write_items(&from.read_view()?, stored_keys(from).len()?, store, progress, None))
}

/// Begins a copy of `source` at `out`, which must not exist.
fn copy_of(
    source: &Store,
    out: &Path,
    purpose: Purpose,
    (engine, memory_bytes_max): (EngineKind, Option<u64>),
) -> Result<Copy, BackupError> {
    files::refuse_empty(out)?;
    refuse_existing(out)?;
    let options = Options::new().engine(engine).clock(source.inner().engine()?.clock().clone());
    let options = options.memory_if_journaled(memory_bytes_max);
    Copy::begin(out, Mark { purpose, uuid: source.uuid() }, &options)
}

/// Returns an error if the store is damaged. Verified items are not counted in the progress.
fn assert_intact<A: CallbackReply>(
    store: &Store,
    shown: BackupProgress,
    progress: &mut impl FnMut(BackupProgress) -> A,
) -> Result<(), BackupError> {
    let mut is_stopped = false;
    let damage = store.verify(|_| {
        is_stopped = !progress(shown).flow().is_continue();
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match damage?.damage {
        _ if is_stopped => Err(BackupError::Stopped),
        damage if damage.is_empty() => Ok(()),
        damage => Err(BackupError::Damaged { path: store.path().to_owned(), damage }),
    }
}

fn refuse_existing(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(BackupError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::io(path, "examine")(error).into()),
    }
}
